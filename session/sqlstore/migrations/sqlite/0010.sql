CREATE TABLE antiphon_workers (
	id    TEXT PRIMARY KEY,
	data  BLOB NOT NULL,
	until INTEGER NOT NULL
);
