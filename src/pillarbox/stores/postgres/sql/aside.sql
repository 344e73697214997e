-- The destinations for which messages were put aside: one probe of the index each, never a walk over the messages.
SELECT DISTINCT a.destination
  FROM unnest($1::text::smallint[]) AS l(lane)
 CROSS JOIN LATERAL (
   WITH RECURSIVE step AS (
     (SELECT m.destination FROM {message} m WHERE m.lane = l.lane AND m.held = 'aside' ORDER BY m.destination LIMIT 1)
     UNION ALL
     SELECT (SELECT m.destination FROM {message} m
              WHERE m.lane = l.lane AND m.held = 'aside' AND m.destination > step.destination
              ORDER BY m.destination LIMIT 1)
       FROM step WHERE step.destination IS NOT NULL
   )
   SELECT destination FROM step WHERE destination IS NOT NULL
 ) AS a
