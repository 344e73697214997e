-- Drop dead letters for good.
DELETE FROM {dead} WHERE dead_id IN (SELECT value FROM json_each(:ids));
