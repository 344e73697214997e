-- Remember who dropped which dead letters.
INSERT INTO {audit} (who, what, subject, detail)
SELECT :by, 'discard', event_id, json_object('destination', destination, 'dead_id', dead_id)
  FROM {dead}
 WHERE dead_id IN (SELECT value FROM json_each(:ids));
