-- Fragment: each line's first message outside the range of times, whatever it waits for; one walk over the hot table.
WITH outside AS MATERIALIZED (
  SELECT o.key, o.destination, min(o.id) AS id
    FROM {message} AS o
   WHERE o.key IS NOT NULL AND (o.recorded_at < :after OR o.recorded_at >= :before)
   GROUP BY o.key, o.destination)
