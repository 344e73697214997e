-- How long each send took, and what consumers met: processed, duplicates, failures, by the hour.

ALTER TABLE {attempt} ADD COLUMN seconds REAL;
ALTER TABLE {history} ADD COLUMN seconds REAL;
CREATE TABLE {inbox_tally} (
  consumer       TEXT NOT NULL,
  hour           TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:00:00.000Z', 'now')),
  processed        INTEGER NOT NULL DEFAULT 0,
  duplicates       INTEGER NOT NULL DEFAULT 0,
  failures         INTEGER NOT NULL DEFAULT 0,
  dead_lettered       INTEGER NOT NULL DEFAULT 0,
  last_error     TEXT,
  last_failed_at TEXT,
  PRIMARY KEY (consumer, hour)
);
