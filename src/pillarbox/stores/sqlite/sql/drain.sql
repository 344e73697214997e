-- Ask a relay to drain, or all of them that live.
UPDATE {relay} SET drain_asked_by = :by
 WHERE {lease_runs} AND (id = :relay OR name = :relay OR :relay = '*')
RETURNING id;
