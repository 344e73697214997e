-- Ask the lane's owner to do something with a waiting message.
INSERT INTO {request} (action, event_id, destination, delay, asked_by)
VALUES ($1, $2, $3, $4, coalesce(nullif($5, ''), current_user)) RETURNING request_id
