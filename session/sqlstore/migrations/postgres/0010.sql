CREATE TABLE antiphon_workers (
	id    TEXT PRIMARY KEY,
	data  BYTEA NOT NULL,
	until BIGINT NOT NULL
);
