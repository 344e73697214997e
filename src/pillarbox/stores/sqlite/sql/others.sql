-- The breakers of each other relay that lives.
SELECT breakers FROM {relay} WHERE id <> :relay AND lease_until > {now} ORDER BY id;
