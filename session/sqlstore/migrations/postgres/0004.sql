ALTER TABLE antiphon_logs ADD COLUMN origin TEXT NOT NULL DEFAULT '';

CREATE TABLE antiphon_seal (
	salt  BYTEA NOT NULL,
	proof BYTEA NOT NULL,
	sum   BYTEA NOT NULL
);
