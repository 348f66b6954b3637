DROP INDEX antiphon_work_state;
CREATE INDEX antiphon_work_ready ON antiphon_work (state, tenant, priority DESC, due, id);
