-- Every relay: the time left of its lease, how its breakers stand, how long it lives, what it has had in hand for long.
SELECT id, name, host,
       round(CASE WHEN {lease_runs} THEN coalesce(lease_end - elapsed(),
                                                  (julianday(lease_until) - julianday({now})) * 86400.0)
                  ELSE 0.0 END, 3), breakers, version,
       round((julianday({now}) - julianday(started_at)) * 86400.0, 3), json_array_length(in_hand), drain_asked_by IS NOT NULL, stalled
  FROM {relay} ORDER BY id;
