CREATE TABLE antiphon_logs (
	log     BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	base    BIGINT NOT NULL DEFAULT 0,
	base_at BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX antiphon_logs_base ON antiphon_logs (base, base_at);

CREATE TABLE antiphon_sessions (
	id       TEXT PRIMARY KEY COLLATE "C",
	log      BIGINT NOT NULL UNIQUE,
	entries  BIGINT NOT NULL,
	merged   BIGINT NOT NULL,
	touched  BIGINT NOT NULL,
	created  BIGINT NOT NULL,
	updated  BIGINT NOT NULL,
	title    TEXT NOT NULL DEFAULT '',
	name     TEXT NOT NULL DEFAULT '',
	path     TEXT NOT NULL DEFAULT '',
	parent   TEXT NOT NULL DEFAULT '',
	at       BIGINT NOT NULL DEFAULT 0,
	nested   BOOLEAN NOT NULL DEFAULT FALSE,
	owner    BIGINT NOT NULL DEFAULT 0,
	archived BOOLEAN NOT NULL DEFAULT FALSE
);
CREATE INDEX antiphon_sessions_parent ON antiphon_sessions (parent);
CREATE INDEX antiphon_sessions_owner ON antiphon_sessions (owner) WHERE owner <> 0;
CREATE UNIQUE INDEX antiphon_sessions_name ON antiphon_sessions (path, name) WHERE name <> '' AND NOT archived;

CREATE SEQUENCE antiphon_touches;

CREATE TABLE antiphon_entries (
	log  BIGINT NOT NULL,
	last BIGINT NOT NULL,
	n    BIGINT NOT NULL,
	data BYTEA NOT NULL,
	PRIMARY KEY (log, last)
);

CREATE TABLE antiphon_blobs (
	blob BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	hash BYTEA NOT NULL UNIQUE,
	size BIGINT NOT NULL
);
CREATE TABLE antiphon_chunks (
	blob BIGINT NOT NULL,
	n    BIGINT NOT NULL,
	data BYTEA NOT NULL,
	PRIMARY KEY (blob, n)
);
ALTER TABLE antiphon_chunks ALTER COLUMN data SET STORAGE EXTERNAL;
CREATE TABLE antiphon_refs (
	log   BIGINT NOT NULL,
	blob  BIGINT NOT NULL,
	first BIGINT NOT NULL,
	PRIMARY KEY (log, blob)
);
CREATE INDEX antiphon_refs_blob ON antiphon_refs (blob);

CREATE TABLE antiphon_writers (
	id     TEXT PRIMARY KEY,
	holder TEXT NOT NULL
);
