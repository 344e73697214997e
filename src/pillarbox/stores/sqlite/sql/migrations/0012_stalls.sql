-- A relay that makes no progress although it could says why in its row.

ALTER TABLE {relay} ADD COLUMN stalled TEXT NOT NULL DEFAULT '';
