-- name: append
-- Append events in the order given: a JSON array of rows, and every payload one slice of a single blob.
-- WHERE true keeps the parser from reading ON CONFLICT as a join; substr of an empty blob is null; the blob must
-- stay a bare parameter, as anything else would copy all of it for every row.
-- variant ignore_duplicates: on_conflict=skip_pending
INSERT INTO {message} (event_id, destination, event_type, aggregate_type, aggregate_id, ordering_key,
  content_type, headers, schema_version, correlation_id, causation_id, trace_id, occurred_at, available_at, payload)
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'),
  json_extract(value, '$[3]'), json_extract(value, '$[4]'), json_extract(value, '$[5]'),
  json_extract(value, '$[6]'), json_extract(value, '$[7]'), json_extract(value, '$[8]'),
  json_extract(value, '$[9]'), json_extract(value, '$[10]'), json_extract(value, '$[11]'),
  coalesce(json_extract(value, '$[12]'), strftime('%Y-%m-%dT%H:%M:%fZ', 'now')), json_extract(value, '$[13]'),
  coalesce(substr($1, json_extract(value, '$[14]'), json_extract(value, '$[15]')), x'')
FROM json_each($2)
WHERE true
ORDER BY json_each.key
{on_conflict}

-- fragment: skip_pending
-- Skip events that are already pending.
ON CONFLICT DO NOTHING
