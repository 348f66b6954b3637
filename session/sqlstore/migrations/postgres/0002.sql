ALTER TABLE antiphon_sessions
	ADD COLUMN head BYTEA NOT NULL DEFAULT '',
	ADD COLUMN sum BYTEA NOT NULL DEFAULT '',
	ADD COLUMN key BIGINT NOT NULL DEFAULT 0;
CREATE INDEX antiphon_sessions_key ON antiphon_sessions (key);

ALTER TABLE antiphon_entries ADD COLUMN sums BYTEA NOT NULL DEFAULT '';
ALTER TABLE antiphon_chunks ADD COLUMN sum BYTEA NOT NULL DEFAULT '';

CREATE TABLE antiphon_state (
	name  TEXT PRIMARY KEY,
	value BIGINT NOT NULL
);
INSERT INTO antiphon_state VALUES ('deleted', 1);
