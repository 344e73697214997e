-- Take lanes that are free or whose owner is dead, each under a new epoch, without waiting for anybody.
WITH alive AS MATERIALIZED (
  SELECT FROM {relay} WHERE id = $1 AND lease_until > now()
), dead AS MATERIALIZED (
  SELECT id FROM {relay} WHERE lease_until < now() AND id <> $1 ORDER BY id FOR UPDATE SKIP LOCKED
), buried AS (
  DELETE FROM {relay} r USING dead d WHERE r.id = d.id
), candidate AS MATERIALIZED (
  SELECT l.lane, l.epoch FROM {lane} l
  WHERE l.owner IS NULL OR l.owner = ANY (ARRAY(SELECT id FROM dead))
     OR NOT EXISTS (SELECT FROM {relay} r WHERE r.id = l.owner)
), free AS MATERIALIZED (
  -- The epoch again: a lane that a relay unknown to this snapshot took meanwhile must not look ownerless.
  SELECT l.lane FROM {lane} l JOIN candidate c ON c.lane = l.lane AND c.epoch = l.epoch
  WHERE EXISTS (SELECT FROM alive)
  ORDER BY l.lane LIMIT $2 FOR NO KEY UPDATE OF l SKIP LOCKED
)
UPDATE {lane} l SET owner = $1, epoch = l.epoch + 1, crashes = l.crashes + (l.owner IS NOT NULL)::integer
FROM free WHERE l.lane = free.lane
RETURNING l.lane, l.epoch, l.crashes
