-- Save the notifications of one message. Existing rows stay unchanged and are not returned.
INSERT INTO {table} (event_id, user_id, notification_type, event_type, aggregate_id, title, body, payload,
  deliver_after, created_at)
SELECT :event_id, r.user_id, r.channel, :event_type, :aggregate_id, :title, :body, CAST(:payload AS jsonb),
  r.deliver_after AT TIME ZONE 'UTC', :created_at
FROM jsonb_to_recordset(CAST(:recipients AS jsonb)) AS r (user_id bigint, channel text, deliver_after timestamp)
ON CONFLICT (event_id, user_id, notification_type) DO NOTHING
RETURNING id, user_id, notification_type
