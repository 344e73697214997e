-- Save what one message means for each user and channel. What is there already stays as it is and is not returned.
INSERT INTO {table} (event_id, user_id, notification_type, event_type, aggregate_id, title, body, payload,
  deliver_after, created_at)
SELECT :event_id, told.user_id, told.channel, :event_type, :aggregate_id, :title, :body, CAST(:payload AS jsonb),
  told.deliver_after AT TIME ZONE 'UTC', :created_at
FROM jsonb_to_recordset(CAST(:told AS jsonb)) AS told (user_id bigint, channel text, deliver_after timestamp)
ON CONFLICT (event_id, user_id, notification_type) DO NOTHING
RETURNING id, user_id, notification_type
