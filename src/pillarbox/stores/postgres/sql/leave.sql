-- Give everything back and be gone.
WITH mine AS MATERIALIZED (
  SELECT l.lane FROM {lane} l WHERE l.owner = $1 ORDER BY l.lane FOR NO KEY UPDATE OF l
), freed AS (
  UPDATE {lane} l SET owner = NULL FROM mine WHERE l.lane = mine.lane
)
DELETE FROM {relay} WHERE id = $1
