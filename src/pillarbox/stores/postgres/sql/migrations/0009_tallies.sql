-- How long each send took, and what consumers met: processed, duplicates, failures, by the hour.

ALTER TABLE {attempt} ADD COLUMN seconds real;
ALTER TABLE {history} ADD COLUMN seconds real;
CREATE TABLE {inbox_tally} (
  consumer       text NOT NULL,
  hour           timestamptz NOT NULL DEFAULT date_trunc('hour', now(), 'UTC'),
  processed        bigint NOT NULL DEFAULT 0,
  duplicates       bigint NOT NULL DEFAULT 0,
  failures         bigint NOT NULL DEFAULT 0,
  dead_lettered       bigint NOT NULL DEFAULT 0,
  last_error     text,
  last_failed_at timestamptz,
  PRIMARY KEY (consumer, hour)
) WITH (fillfactor = 50);
