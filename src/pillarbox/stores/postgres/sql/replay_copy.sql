-- Copy delivered messages, each to the end of its key, and write how far the replay is, if it is still where the caller
-- says ($2): of two who go on with the same replay, one waits here and then finds that it moved.
WITH held AS MATERIALIZED (
  SELECT audit_id FROM {audit} WHERE audit_id = $1 AND what = 'replay' AND detail @> $2::jsonb FOR UPDATE
), copied AS (
  INSERT INTO {message} (event_id, destination, event_type, aggregate_type, aggregate_id, ordering_key, payload, content_type,
    headers, schema_version, correlation_id, causation_id, trace_id, occurred_at)
  SELECT i.copy_id, coalesce($4, m.destination), m.event_type, m.aggregate_type, m.aggregate_id,
    -- The history has the key and not where it came from.
    CASE WHEN m.key IS DISTINCT FROM coalesce(m.aggregate_type || ':' || m.aggregate_id, m.aggregate_id) THEN m.key END,
    m.payload, m.content_type, m.headers || jsonb_build_object('replayof', coalesce(m.headers->>'replayof', m.event_id)),
    m.schema_version, m.correlation_id, m.causation_id, m.trace_id, m.occurred_at
  FROM held, unnest($5::text[], $6::bigint[], $7::text[], $8::timestamptz[], $9::text[]) WITH ORDINALITY
    AS i(event_id, id, destination, published_at, copy_id, n)
  JOIN {history} m ON m.event_id = i.event_id AND m.id = i.id AND m.destination = i.destination AND m.published_at = i.published_at
  ORDER BY i.n
  ON CONFLICT DO NOTHING RETURNING 1
)
UPDATE {audit} a SET count = a.count + (SELECT count(*) FROM copied), detail = a.detail || $3::jsonb
FROM held WHERE a.audit_id = held.audit_id
RETURNING a.at, a.count, a.detail::text
