CREATE TABLE antiphon_inbox (
	log   BIGINT NOT NULL,
	n     BIGINT NOT NULL,
	key   BYTEA NOT NULL,
	sum   BYTEA NOT NULL,
	taken BIGINT NOT NULL DEFAULT 0,
	data  BYTEA NOT NULL,
	PRIMARY KEY (log, n)
);
CREATE UNIQUE INDEX antiphon_inbox_key ON antiphon_inbox (log, key);
CREATE INDEX antiphon_inbox_waiting ON antiphon_inbox (log, n) WHERE taken = 0;
