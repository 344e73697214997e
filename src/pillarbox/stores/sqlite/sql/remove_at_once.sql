-- What was delivered waits no longer; a transaction of its own where nothing is kept.
DELETE FROM {message} WHERE row_id IN (SELECT row_id FROM {delivered_at_once});
