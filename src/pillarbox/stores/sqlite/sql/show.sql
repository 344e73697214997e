-- All of one event: waiting, delivered and given up, with the number of its dead letter.
SELECT v.id, v.event_id, v.destination, v.status, v.event_type, v.aggregate_type, v.aggregate_id, v.key, v.payload_bytes,
       v.content_type, v.headers, v.schema_version, v.correlation_id, v.causation_id, v.trace_id, v.occurred_at,
       v.created_at, v.published_at, h.seconds, v.attempts, v.retry_count, v.last_error, v.last_attempt_at, v.next_retry_at,
       v.locked_by, v.locked_at, d.dead_id, d.first_failed_at, d.died_at
  FROM {event} AS v
  LEFT JOIN {history} AS h
    ON h.event_id = v.event_id AND h.id = v.id AND h.destination = v.destination AND h.published_at = v.published_at
  LEFT JOIN {dead} AS d
    ON v.status = 'FAILED' AND d.event_id = v.event_id AND d.id = v.id AND d.destination = v.destination
 WHERE v.event_id = :event_id
 ORDER BY v.created_at, v.id, v.destination;
