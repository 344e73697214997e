-- Keys that stand still until a person decides: the message at the head, and how many are known to wait behind it.
SELECT m.key, m.destination, m.event_id, m.event_type, m.last_error, coalesce(m.last_attempt_at, m.recorded_at),
       (SELECT count(*) FROM (SELECT 1 FROM {message} b WHERE b.key = m.key AND b.held = 'behind' LIMIT :most + 1))
  FROM {message} m WHERE m.held = 'blocked' ORDER BY m.recorded_at DESC, m.id DESC LIMIT :limit;
