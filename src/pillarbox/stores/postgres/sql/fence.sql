-- Fragment: lock the lanes in their order and compare epochs. A condition on the epoch without the lock is no fence.
fence AS MATERIALIZED (
  SELECT l.lane, l.crashes FROM {lane} l JOIN unnest($1::text::smallint[], $2::text::bigint[]) AS e(lane, epoch)
    ON l.lane = e.lane AND l.epoch = e.epoch
  ORDER BY l.lane FOR NO KEY UPDATE OF l
), calm AS (
  -- Progress: the crashes of former owners no longer matter.
  UPDATE {lane} l SET crashes = 0 WHERE {progress} AND l.lane = ANY (ARRAY(SELECT lane FROM fence WHERE crashes > 0))
)
