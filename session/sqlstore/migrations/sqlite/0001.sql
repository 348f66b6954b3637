CREATE TABLE antiphon_logs (
	log     INTEGER PRIMARY KEY AUTOINCREMENT,
	base    INTEGER NOT NULL DEFAULT 0,
	base_at INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX antiphon_logs_base ON antiphon_logs (base, base_at);

CREATE TABLE antiphon_sessions (
	log      INTEGER PRIMARY KEY,
	id       TEXT NOT NULL UNIQUE,
	entries  INTEGER NOT NULL,
	merged   INTEGER NOT NULL,
	touched  INTEGER NOT NULL,
	created  INTEGER NOT NULL,
	updated  INTEGER NOT NULL,
	title    TEXT NOT NULL DEFAULT '',
	name     TEXT NOT NULL DEFAULT '',
	path     TEXT NOT NULL DEFAULT '',
	parent   TEXT NOT NULL DEFAULT '',
	at       INTEGER NOT NULL DEFAULT 0,
	nested   BOOLEAN NOT NULL DEFAULT FALSE,
	owner    INTEGER NOT NULL DEFAULT 0,
	archived BOOLEAN NOT NULL DEFAULT FALSE
);
CREATE INDEX antiphon_sessions_parent ON antiphon_sessions (parent);
CREATE INDEX antiphon_sessions_owner ON antiphon_sessions (owner) WHERE owner <> 0;
CREATE UNIQUE INDEX antiphon_sessions_name ON antiphon_sessions (path, name) WHERE name <> '' AND NOT archived;

CREATE TABLE antiphon_touches (n INTEGER NOT NULL);
INSERT INTO antiphon_touches VALUES (0);

CREATE TABLE antiphon_entries (
	log  INTEGER NOT NULL,
	last INTEGER NOT NULL,
	n    INTEGER NOT NULL,
	data BLOB NOT NULL,
	PRIMARY KEY (log, last)
);

CREATE TABLE antiphon_blobs (
	blob INTEGER PRIMARY KEY AUTOINCREMENT,
	hash BLOB NOT NULL UNIQUE,
	size INTEGER NOT NULL
);
CREATE TABLE antiphon_chunks (
	blob INTEGER NOT NULL,
	n    INTEGER NOT NULL,
	data BLOB NOT NULL,
	PRIMARY KEY (blob, n)
);
CREATE TABLE antiphon_refs (
	log   INTEGER NOT NULL,
	blob  INTEGER NOT NULL,
	first INTEGER NOT NULL,
	PRIMARY KEY (log, blob)
) WITHOUT ROWID;
CREATE INDEX antiphon_refs_blob ON antiphon_refs (blob);
