-- Drop the tables and the view of one outbox and its inbox. The table of versions is the last one.

DROP VIEW IF EXISTS {event};
DROP TABLE IF EXISTS {message}, {key_lock}, {history}, {dead_letter}, {attempt}, {relay}, {lane}, {destination}, {request}, {audit},
  {sample}, {inbox}, {inbox_statistics}, {ledger};
DROP TABLE IF EXISTS {schema};
