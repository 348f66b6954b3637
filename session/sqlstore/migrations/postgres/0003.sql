ALTER TABLE antiphon_sessions
	ADD COLUMN whose TEXT NOT NULL DEFAULT '',
	ADD COLUMN tags TEXT NOT NULL DEFAULT '',
	ADD COLUMN titled BOOLEAN NOT NULL DEFAULT FALSE,
	ADD COLUMN name_key BIGINT NOT NULL DEFAULT 0,
	ADD COLUMN indexed BIGINT NOT NULL DEFAULT 0,
	ADD COLUMN stale BOOLEAN NOT NULL DEFAULT TRUE;

DROP INDEX antiphon_sessions_name;
CREATE UNIQUE INDEX antiphon_sessions_name ON antiphon_sessions (path, name, whose) WHERE name <> '' AND NOT archived;
CREATE INDEX antiphon_sessions_name_key ON antiphon_sessions (name_key) WHERE name <> '';
CREATE INDEX antiphon_sessions_stale ON antiphon_sessions (log) WHERE stale;

CREATE INDEX antiphon_sessions_touched ON antiphon_sessions (touched, log, nested, archived);
CREATE INDEX antiphon_sessions_by_name ON antiphon_sessions (name, touched, log, nested, archived) WHERE name <> '';
CREATE INDEX antiphon_sessions_by_path ON antiphon_sessions (path, touched, log, nested, archived) WHERE path <> '';
CREATE INDEX antiphon_sessions_by_whose ON antiphon_sessions (whose, touched, log, nested, archived) WHERE whose <> '';

CREATE TABLE antiphon_tags (
	log     BIGINT NOT NULL,
	tag     TEXT NOT NULL,
	whose   TEXT NOT NULL,
	touched BIGINT NOT NULL,
	PRIMARY KEY (log, tag)
);
CREATE INDEX antiphon_tags_by_tag ON antiphon_tags (tag, touched, log);
CREATE INDEX antiphon_tags_by_whose ON antiphon_tags (whose, tag, touched, log) WHERE whose <> '';

CREATE TABLE antiphon_docs (
	doc   BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	log   BIGINT NOT NULL,
	seq   BIGINT NOT NULL,
	words TSVECTOR NOT NULL
);
CREATE UNIQUE INDEX antiphon_docs_entry ON antiphon_docs (log, seq);
CREATE INDEX antiphon_docs_words ON antiphon_docs USING gin (words);
CREATE TABLE antiphon_hidden (
	log BIGINT NOT NULL,
	seq BIGINT NOT NULL,
	PRIMARY KEY (log, seq)
);
INSERT INTO antiphon_state VALUES ('search', 1);
