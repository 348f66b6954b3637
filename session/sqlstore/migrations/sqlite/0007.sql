CREATE TABLE antiphon_work (
	id       TEXT PRIMARY KEY,
	agent    TEXT NOT NULL,
	tenant   TEXT NOT NULL,
	priority INTEGER NOT NULL,
	needs    TEXT NOT NULL,
	due      INTEGER NOT NULL,
	state    TEXT NOT NULL,
	since    INTEGER NOT NULL,
	attempts INTEGER NOT NULL,
	reason   BLOB NOT NULL,
	worker   TEXT NOT NULL,
	claim    INTEGER NOT NULL,
	told     INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX antiphon_work_state ON antiphon_work (state, due);
