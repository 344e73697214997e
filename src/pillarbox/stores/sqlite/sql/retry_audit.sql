-- Remember who sent which dead letters again.
INSERT INTO {audit} (who, what, subject, detail)
SELECT :by, 'retry', event_id, json_object('destination', destination, 'dead_id', dead_id)
  FROM {dead}
 WHERE dead_id IN (SELECT -place FROM {message} WHERE place < 0);
