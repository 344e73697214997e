-- Keys that stand still until a person decides: the message at the head, and how many are known to wait behind it.
SELECT m.key, m.destination, m.event_id, m.event_type, m.last_error, coalesce(m.last_attempt_at, m.recorded_at),
       (SELECT count(*) FROM (SELECT FROM {message} b
                              WHERE b.lane = m.lane AND b.key = m.key AND b.held = 'behind' LIMIT $2::int + 1) AS w)
FROM {message} m WHERE m.held = 'blocked' ORDER BY m.recorded_at DESC, m.id DESC LIMIT $1
