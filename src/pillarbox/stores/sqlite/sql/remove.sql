-- What was delivered, given up or repeated waits no longer.
DELETE FROM {message}
 WHERE row_id IN (SELECT row_id FROM temp.desk WHERE outcome IN ('delivered', 'dead', 'repeat'));
