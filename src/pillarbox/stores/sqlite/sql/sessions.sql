-- Every other relay whose lease runs and that holds a lock.
SELECT id, session FROM {relay} WHERE id <> :relay AND {lease_runs} AND session IS NOT NULL ORDER BY id;
