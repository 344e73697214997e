-- Give lanes back; under another epoch they are somebody else's.
WITH mine AS MATERIALIZED (
  SELECT l.lane FROM {lane} l JOIN unnest($2::text::smallint[], $3::text::bigint[]) AS e(lane, epoch)
    ON l.lane = e.lane AND l.epoch = e.epoch
  WHERE l.owner = $1 ORDER BY l.lane FOR NO KEY UPDATE OF l
)
UPDATE {lane} l SET owner = NULL FROM mine WHERE l.lane = mine.lane
