-- Drop exactly these dead letters.
DELETE FROM {dead} WHERE dead_id IN (SELECT value FROM json_each(:rows));
