-- Append events in the order given: one statement, whatever their number. The subselect is executed once for all rows.
INSERT INTO {message} (event_id, destination, event_type, aggregate_type, aggregate_id, ordering_key, payload,
  content_type, headers, schema_version, correlation_id, causation_id, trace_id, occurred_at, available_at)
SELECT event_id, destination, event_type, aggregate_type, aggregate_id, ordering_key, payload,
  content_type, headers::jsonb, schema_version, correlation_id, causation_id, trace_id,
  coalesce(occurred_at, now()), available_at
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bytea[],
  $8::text[], $9::text[], $10::integer[], $11::text[], $12::text[], $13::text[],
  $14::timestamptz[], $15::timestamptz[])
  WITH ORDINALITY AS given (event_id, destination, event_type, aggregate_type, aggregate_id, ordering_key, payload,
  content_type, headers, schema_version, correlation_id, causation_id, trace_id, occurred_at, available_at, place)
WHERE (SELECT {notify})
ORDER BY place
{on_conflict}
