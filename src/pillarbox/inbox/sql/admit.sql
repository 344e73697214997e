-- Write a receipt unless there is one: a row comes back if the event is new to the consumer, and none otherwise.
-- Who comes second waits for the first to commit or roll back. No conflict target and no column in RETURNING: the right
-- to INSERT is enough.
INSERT INTO {inbox_receipt} (consumer, event_id) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING 1;
