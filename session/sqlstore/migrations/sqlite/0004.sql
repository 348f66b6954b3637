ALTER TABLE antiphon_logs ADD COLUMN origin TEXT NOT NULL DEFAULT '';

CREATE TABLE antiphon_seal (
	salt  BLOB NOT NULL,
	proof BLOB NOT NULL,
	sum   BLOB NOT NULL
);
