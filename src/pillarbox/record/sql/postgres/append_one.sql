-- Append one event, the usual case: without arrays it takes a fifth (asyncpg) to two fifths (psycopg) less time.
-- The check whether to notify is part of a value: an INSERT that returns nothing costs the drivers least.
INSERT INTO {message} (event_id, destination, event_type, aggregate_type, aggregate_id, ordering_key, payload,
  content_type, headers, schema_version, correlation_id, causation_id, trace_id, occurred_at, available_at)
VALUES ($1::text, $2::text, $3::text, $4::text, $5::text, $6::text, $7::bytea,
  $8::text, $9::text::jsonb, $10::integer, $11::text, $12::text, $13::text,
  coalesce($14::timestamptz, now()), CASE WHEN {notify} THEN $15::timestamptz END)
{on_conflict}
