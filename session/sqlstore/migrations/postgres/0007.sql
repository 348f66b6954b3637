CREATE TABLE antiphon_work (
	id       TEXT PRIMARY KEY,
	agent    TEXT NOT NULL,
	tenant   TEXT NOT NULL,
	priority BIGINT NOT NULL,
	needs    TEXT NOT NULL,
	due      BIGINT NOT NULL,
	state    TEXT NOT NULL,
	since    BIGINT NOT NULL,
	attempts BIGINT NOT NULL,
	reason   BYTEA NOT NULL,
	worker   TEXT NOT NULL,
	claim    BIGINT NOT NULL,
	told     BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX antiphon_work_state ON antiphon_work (state, due);
