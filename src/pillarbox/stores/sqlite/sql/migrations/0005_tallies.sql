-- How long each send took, and what consumers met: handled, repeated, failed, by the hour.

ALTER TABLE {attempt} ADD COLUMN seconds REAL;
ALTER TABLE {history} ADD COLUMN seconds REAL;
CREATE TABLE {inbox_tally} (
  consumer       TEXT NOT NULL,
  hour           TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:00:00.000Z', 'now')),
  handled        INTEGER NOT NULL DEFAULT 0,
  repeated       INTEGER NOT NULL DEFAULT 0,
  failed         INTEGER NOT NULL DEFAULT 0,
  given_up       INTEGER NOT NULL DEFAULT 0,
  last_error     TEXT,
  last_failed_at TEXT,
  PRIMARY KEY (consumer, hour)
);
