-- Ask the lane's owner for something.
INSERT INTO {request} (action, event_id, destination, delay, asked_by)
VALUES (:action, :event_id, :destination, :delay, :by)
RETURNING request_id;
