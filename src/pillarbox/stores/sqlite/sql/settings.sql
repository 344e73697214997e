-- How the store's own connection works; producers choose for theirs.

PRAGMA journal_mode = WAL;
-- In WAL mode NORMAL may forget the last commits of this connection when the power fails, never corrupt them:
-- a forgotten settlement is a duplicate, not a loss. Events are committed by their producers' connections.
PRAGMA synchronous = NORMAL;
PRAGMA temp_store = MEMORY;
-- What a write is about, so that it takes the same few statements for one message as for a thousand.
CREATE TEMP TABLE IF NOT EXISTS desk (
  row_id      INTEGER NOT NULL,
  destination TEXT NOT NULL,
  outcome     TEXT NOT NULL,
  charge      INTEGER,
  noted       INTEGER,
  delay       REAL,
  error       TEXT,
  seconds     REAL
);
CREATE INDEX IF NOT EXISTS temp.desk_row_id_idx ON desk (row_id);
