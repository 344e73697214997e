-- Save the notifications of one message. Existing rows stay unchanged and are not returned.
-- WHERE true keeps the parser from reading ON CONFLICT as a join.
INSERT INTO {table} (event_id, user_id, notification_type, event_type, aggregate_id, title, body, payload,
  deliver_after, created_at)
SELECT :event_id, json_extract(value, '$.user_id'), json_extract(value, '$.channel'), :event_type, :aggregate_id,
  :title, :body, :payload, json_extract(value, '$.deliver_after'), :created_at
FROM json_each(:recipients)
WHERE true
ON CONFLICT (event_id, user_id, notification_type) DO NOTHING
RETURNING id, user_id, notification_type
