-- The destinations for which messages were put aside: one probe of the index each, never a walk over the messages.
WITH RECURSIVE step(destination) AS (
  SELECT min(destination) FROM {message} WHERE held = 'aside'
  UNION ALL
  SELECT (SELECT min(m.destination) FROM {message} AS m WHERE m.held = 'aside' AND m.destination > step.destination)
    FROM step WHERE step.destination IS NOT NULL
)
SELECT destination FROM step WHERE destination IS NOT NULL;
