-- The last number drawn for a message.
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = '{prefix}message'), 0);
