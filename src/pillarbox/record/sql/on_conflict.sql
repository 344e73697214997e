-- Leave out what already waits. Without a target it needs no right to read the table.
ON CONFLICT DO NOTHING
