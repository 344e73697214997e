-- A waiting message is dropped for good.
DELETE FROM {message} WHERE row_id = :row_id;
