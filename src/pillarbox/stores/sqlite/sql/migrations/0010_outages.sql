-- In an outage an event shows the error and the next attempt of its destination, although the event itself was not sent yet.

DROP VIEW {event};
CREATE VIEW {event} AS
SELECT m.id, m.event_id, m.event_type, m.aggregate_type, m.aggregate_id, m.key, m.destination,
       CASE WHEN m.held = 'blocked' THEN 'FAILED' WHEN m.hand IS NULL THEN 'PENDING' ELSE 'PROCESSING' END AS status,
       CASE WHEN m.content_type LIKE '%json%' AND json_valid(CAST(m.payload AS TEXT))
                 AND instr(CAST(m.payload AS BLOB), x'00') = 0
            THEN CAST(m.payload AS TEXT) END AS payload,
       CAST(m.payload AS BLOB) AS payload_bytes, m.content_type, m.headers, m.schema_version,
       m.correlation_id, m.causation_id, m.trace_id, m.occurred_at, m.recorded_at AS created_at,
       NULL AS published_at, m.attempts,
       CASE WHEN m.last_attempt_at IS NULL THEN 0 ELSE m.attempts + m.deferrals END AS retry_count,
       coalesce(m.last_error, o.last_error) AS last_error, m.last_attempt_at,
       CASE WHEN m.held IS NOT 'blocked' THEN coalesce(m.available_at, o.next_attempt_at) END AS next_retry_at,
       json_extract(m.hand, '$[0]') AS locked_by, json_extract(m.hand, '$[1]') AS locked_at
  FROM (SELECT w.*,
               (SELECT json_array(ltrim(r.name || ' ' || r.id), json_extract(h.value, '$[2]'))
                  FROM {relay} AS r, json_each(r.in_flight) AS h
                 WHERE r.lease_until > strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
                   AND json_extract(h.value, '$[0]') = w.event_id
                   AND w.destination IN ('', json_extract(h.value, '$[1]'))
                 LIMIT 1) AS hand
          FROM {message} AS w) AS m
  LEFT JOIN (
  SELECT d.destination, d.last_error, d.next_attempt_at FROM {destination} AS d
  UNION ALL
  SELECT * FROM (SELECT '', d.last_error, d.next_attempt_at FROM {destination} AS d
                  WHERE d.last_error IS NOT NULL
                    AND EXISTS (SELECT 1 FROM {relay} AS r, json_each(r.breakers) AS b
                                 WHERE r.lease_until > strftime('%Y-%m-%dT%H:%M:%fZ', 'now') AND b.key = d.destination AND b.value <> 'closed')
                    AND NOT EXISTS (SELECT 1 FROM {relay} AS r, json_each(r.breakers) AS b
                                     WHERE r.lease_until > strftime('%Y-%m-%dT%H:%M:%fZ', 'now') AND b.value = 'closed')
                  ORDER BY d.next_attempt_at LIMIT 1)) AS o ON o.destination = m.destination AND (m.destination = '' OR m.held IS 'parked' OR m.deferrals > 0)
                         AND coalesce(m.held, '') NOT IN ('blocked', 'waiting')
UNION ALL
SELECT h.id, h.event_id, h.event_type, h.aggregate_type, h.aggregate_id, h.key, h.destination,
       'PUBLISHED',
       CASE WHEN h.content_type LIKE '%json%' AND json_valid(CAST(h.payload AS TEXT))
                 AND instr(CAST(h.payload AS BLOB), x'00') = 0
            THEN CAST(h.payload AS TEXT) END,
       CAST(h.payload AS BLOB), h.content_type, h.headers, h.schema_version,
       h.correlation_id, h.causation_id, h.trace_id, h.occurred_at, h.recorded_at,
       h.published_at, h.attempts, CASE WHEN h.last_attempt_at IS NULL THEN 0 ELSE h.attempts + h.deferrals END,
       h.last_error, h.last_attempt_at,
       NULL, NULL, NULL
  FROM {history} AS h
UNION ALL
SELECT d.id, d.event_id, d.event_type, d.aggregate_type, d.aggregate_id, d.key, d.destination,
       'FAILED',
       CASE WHEN d.content_type LIKE '%json%' AND json_valid(CAST(d.payload AS TEXT))
                 AND instr(CAST(d.payload AS BLOB), x'00') = 0
            THEN CAST(d.payload AS TEXT) END,
       CAST(d.payload AS BLOB), d.content_type, d.headers, d.schema_version,
       d.correlation_id, d.causation_id, d.trace_id, d.occurred_at, d.recorded_at,
       NULL, d.attempts, CASE WHEN d.last_attempt_at IS NULL THEN 0 ELSE d.attempts + d.deferrals END,
       d.error, d.last_attempt_at,
       NULL, NULL, NULL
  FROM {dead_letter} AS d;
