-- Say that a relay is awake.
UPDATE {relay} SET asleep_until = NULL WHERE id = :relay AND asleep_until IS NOT NULL;
