-- What operators see and ask for: samples over time, a relay that is to drain, a head that is to be a dead letter.

DROP TABLE {sample};
CREATE TABLE {sample} (
  at          TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  relay       TEXT NOT NULL,
  destination TEXT NOT NULL,
  statistics     TEXT NOT NULL
);
CREATE INDEX {prefix}sample_at_idx ON {sample} (at);
ALTER TABLE {relay} ADD COLUMN drain_requested_by TEXT;
ALTER TABLE {request} RENAME TO {prefix}request_before;
DROP INDEX {prefix}request_open_idx;
CREATE TABLE {request} (
  request_id  INTEGER PRIMARY KEY AUTOINCREMENT,
  action      TEXT NOT NULL CHECK (action IN ('retry', 'discard', 'reschedule', 'dead_letter')),
  event_id    TEXT NOT NULL,
  destination TEXT NOT NULL DEFAULT '',
  delay       REAL NOT NULL DEFAULT 0 CHECK (delay >= 0),
  requested_by    TEXT NOT NULL DEFAULT '',
  requested_at    TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  done_at     TEXT,
  result      TEXT
);
INSERT INTO {request} SELECT * FROM {prefix}request_before;
DROP TABLE {prefix}request_before;
CREATE INDEX {prefix}request_open_idx ON {request} (request_id) WHERE done_at IS NULL;
