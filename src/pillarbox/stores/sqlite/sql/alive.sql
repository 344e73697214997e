-- Does this relay live?
SELECT count(*) FROM {relay} WHERE id = :relay AND {lease_runs};
