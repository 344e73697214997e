-- Ask a relay to drain, or all of them that live; and remember who did.
WITH asked AS (
  UPDATE {relay} SET drain_asked_by = coalesce(nullif($2, ''), current_user)
  WHERE lease_until > now() AND (id = $1 OR name = $1 OR $1 = '*')
  RETURNING id, drain_asked_by
), noted AS (
  INSERT INTO {audit} (who, what, subject) SELECT drain_asked_by, 'drain', id FROM asked
) SELECT id FROM asked ORDER BY id
