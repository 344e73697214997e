-- In an outage an event shows the error and the next attempt of its destination, although the event itself was not sent yet.

CREATE OR REPLACE VIEW {event} AS
SELECT m.id, m.event_id, m.event_type, m.aggregate_type, m.aggregate_id, m.key, m.destination,
       CASE WHEN m.held = 'blocked' THEN 'FAILED' WHEN h.since IS NOT NULL THEN 'PROCESSING' ELSE 'PENDING' END AS status,
       {json}(m.payload, m.content_type) AS payload, m.payload AS payload_bytes, m.content_type, m.headers,
       m.schema_version, m.correlation_id, m.causation_id, m.trace_id, m.occurred_at, m.recorded_at AS created_at,
       NULL::timestamptz AS published_at, m.attempts,
       CASE WHEN m.last_attempt_at IS NULL THEN 0 ELSE m.attempts + m.deferrals END AS retry_count,
       coalesce(m.last_error, d.last_error) AS last_error, m.last_attempt_at,
       CASE WHEN m.held = 'blocked' THEN NULL ELSE coalesce(m.available_at, d.next_attempt_at) END AS next_retry_at,
       h.locked_by, h.since AS locked_at
FROM {message} m
LEFT JOIN (
  SELECT d.destination, d.last_error, d.next_attempt_at FROM {destination} d
  UNION ALL
  (SELECT '', d.last_error, d.next_attempt_at FROM {destination} d
   WHERE d.last_error IS NOT NULL
     AND EXISTS (SELECT FROM {relay} r, jsonb_each_text(r.breakers) b
                 WHERE r.lease_until > now() AND b.key = d.destination AND b.value <> 'closed')
     AND NOT EXISTS (SELECT FROM {relay} r, jsonb_each_text(r.breakers) b WHERE r.lease_until > now() AND b.value = 'closed')
   ORDER BY d.next_attempt_at LIMIT 1)) d ON d.destination = m.destination AND (m.destination = '' OR m.held = 'parked' OR m.deferrals > 0)
                    AND m.held IS DISTINCT FROM 'blocked' AND m.held IS DISTINCT FROM 'waiting'
LEFT JOIN (SELECT x.event_id, x.destination, x.since, concat_ws(' ', nullif(r.name, ''), r.id) AS locked_by
           FROM {relay} r, jsonb_to_recordset(r.in_flight) AS x(event_id text, destination text, since timestamptz)
           WHERE r.lease_until > now()) h
       ON h.event_id = m.event_id AND h.destination = m.destination
UNION ALL
SELECT id, event_id, event_type, aggregate_type, aggregate_id, key, destination, 'PUBLISHED',
       {json}(payload, content_type), payload, content_type, headers,
       schema_version, correlation_id, causation_id, trace_id, occurred_at, recorded_at,
       published_at, attempts, CASE WHEN last_attempt_at IS NULL THEN 0 ELSE attempts + deferrals END, last_error, last_attempt_at,
       NULL, NULL, NULL
FROM {history}
UNION ALL
SELECT id, event_id, event_type, aggregate_type, aggregate_id, key, destination, 'FAILED',
       {json}(payload, content_type), payload, content_type, headers,
       schema_version, correlation_id, causation_id, trace_id, occurred_at, recorded_at,
       NULL, attempts, CASE WHEN last_attempt_at IS NULL THEN 0 ELSE attempts + deferrals END, error, last_attempt_at,
       NULL, NULL, NULL
FROM {dead_letter};
