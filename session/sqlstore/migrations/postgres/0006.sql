CREATE SEQUENCE antiphon_epochs AS BIGINT;
CREATE TABLE antiphon_leases (
	id     TEXT PRIMARY KEY,
	epoch  BIGINT NOT NULL,
	holder TEXT NOT NULL,
	owner  TEXT NOT NULL,
	since  TIMESTAMPTZ NOT NULL,
	until  TIMESTAMPTZ NOT NULL
);
DROP TABLE antiphon_writers;
