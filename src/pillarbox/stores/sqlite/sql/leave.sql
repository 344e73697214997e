-- A relay is gone.
DELETE FROM {relay} WHERE id = :relay;
