-- What a dead letter carries; it never changes as long as it is there.
SELECT destination, CAST(payload AS BLOB), headers FROM {dead} WHERE dead_id = :letter;
