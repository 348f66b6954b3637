CREATE TABLE antiphon_inbox (
	log   INTEGER NOT NULL,
	n     INTEGER NOT NULL,
	key   BLOB NOT NULL,
	sum   BLOB NOT NULL,
	taken INTEGER NOT NULL DEFAULT 0,
	data  BLOB NOT NULL,
	PRIMARY KEY (log, n)
);
CREATE UNIQUE INDEX antiphon_inbox_key ON antiphon_inbox (log, key);
CREATE INDEX antiphon_inbox_waiting ON antiphon_inbox (log, n) WHERE taken = 0;
