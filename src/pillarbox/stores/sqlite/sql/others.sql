-- The breakers of each other relay that lives.
SELECT breakers FROM {relay} WHERE id <> :relay AND {lease_runs} ORDER BY id;
