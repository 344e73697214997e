-- Save the notifications of one message. Existing rows stay unchanged and are not returned.
-- IGNORE would also store invalid values, but there are none: every column holds whatever the message can contain.
INSERT IGNORE INTO {table} (event_id, user_id, notification_type, event_type, aggregate_id, title, body, payload,
  deliver_after, created_at)
SELECT :event_id, r.user_id, r.channel, :event_type, :aggregate_id, :title, :body, :payload,
  r.deliver_after, :created_at
FROM JSON_TABLE(:recipients, '$[*]' COLUMNS (
  user_id BIGINT PATH '$.user_id',
  channel VARCHAR(20) PATH '$.channel',
  deliver_after DATETIME(6) PATH '$.deliver_after'
)) AS r
RETURNING id, user_id, notification_type
