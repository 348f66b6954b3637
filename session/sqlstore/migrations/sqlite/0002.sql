ALTER TABLE antiphon_sessions ADD COLUMN head BLOB NOT NULL DEFAULT x'';
ALTER TABLE antiphon_sessions ADD COLUMN sum BLOB NOT NULL DEFAULT x'';
ALTER TABLE antiphon_sessions ADD COLUMN key INTEGER NOT NULL DEFAULT 0;
CREATE INDEX antiphon_sessions_key ON antiphon_sessions (key);

ALTER TABLE antiphon_entries ADD COLUMN sums BLOB NOT NULL DEFAULT x'';
ALTER TABLE antiphon_chunks ADD COLUMN sum BLOB NOT NULL DEFAULT x'';

CREATE TABLE antiphon_state (
	name  TEXT PRIMARY KEY,
	value INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO antiphon_state VALUES ('deleted', 1);
