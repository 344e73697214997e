-- Fragment: the first message outside the range of times, by key, and by key and destination; one walk over the hot table.
-- One object to look it up in, since a join became a walk over all keys for each message whenever the planner guessed low.
WITH outside AS MATERIALIZED (
  SELECT jsonb_object_agg(f.key || CASE f.all_together WHEN 0 THEN E'\n' || f.destination ELSE '' END, f.id) AS first
  FROM (SELECT o.key, o.destination, grouping(o.destination) AS all_together, min(o.id) AS id FROM {message} o
        WHERE o.lane = ANY (ARRAY(SELECT unnest($1::text::smallint[]))) AND o.key IS NOT NULL
          AND (o.recorded_at < {after} OR o.recorded_at >= {before})
        GROUP BY o.key, ROLLUP (o.destination)) f
)
