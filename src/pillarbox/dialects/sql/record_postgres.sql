-- name: append_one
-- Append one event, the usual case: without arrays it takes a fifth (asyncpg) to two fifths (psycopg) less time.
-- The check whether to notify is part of a value: an INSERT that returns nothing costs the drivers least.
-- with: notify=true
-- variant notify: notify=notify_sleeping_relay
-- variant ignore_duplicates: on_conflict=skip_pending
INSERT INTO {message} ({columns})
VALUES ($1::text, $2::text, $3::text, $4::text, $5::text, $6::text, $7::bytea,
  $8::text, $9::text::jsonb, $10::integer, $11::text, $12::text, $13::text,
  coalesce($14::timestamptz, now()), CASE WHEN {notify} THEN $15::timestamptz END)
{on_conflict}

-- name: append
-- Append events in the order given: one statement, whatever their number. The subselect is executed once for all rows.
-- with: notify=true
-- variant notify: notify=notify_sleeping_relay
-- variant ignore_duplicates: on_conflict=skip_pending
INSERT INTO {message} ({columns})
SELECT event_id, destination, event_type, aggregate_type, aggregate_id, ordering_key, payload,
  content_type, headers::jsonb, schema_version, correlation_id, causation_id, trace_id,
  coalesce(occurred_at, now()), available_at
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bytea[],
  $8::text[], $9::text[], $10::integer[], $11::text[], $12::text[], $13::text[],
  $14::timestamptz[], $15::timestamptz[])
  WITH ORDINALITY AS given ({columns}, place)
WHERE (SELECT {notify})
ORDER BY place
{on_conflict}

-- fragment: columns
-- The columns that a producer fills, in the order of an EventRow.
event_id, destination, event_type, aggregate_type, aggregate_id, ordering_key, payload,
content_type, headers, schema_version, correlation_id, causation_id, trace_id, occurred_at, available_at

-- fragment: skip_pending
-- Skip events that are already pending. Without a target it needs no right to read the table.
ON CONFLICT DO NOTHING

-- fragment: notify_sleeping_relay
-- Notify at commit if a relay sleeps; always true. A sleeping relay shares the lock that is tried here and released at once.
CASE WHEN pg_try_advisory_lock(hashtextextended('{channel}', 0))
  THEN pg_advisory_unlock(hashtextextended('{channel}', 0)) ELSE pg_notify('{channel}', '') IS NOT NULL END

-- name: lock_keys
-- Make writers of the same keys wait for each other until they commit; always in the same order, so none deadlock.
SELECT pg_advisory_xact_lock(lock)
FROM (SELECT DISTINCT hashtextextended('{channel} ' || key, 0) AS lock
      FROM unnest($1::text[]) AS given (key) ORDER BY lock) AS sorted;
