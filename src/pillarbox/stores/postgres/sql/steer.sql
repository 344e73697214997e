-- Set what a person wants for a destination: of paused, breaker and rate_limit those named in $2; and remember who did.
WITH asked AS (
  SELECT $2::jsonb AS want, coalesce(nullif($3, ''), current_user) AS who
), noted AS (
  INSERT INTO {audit} (who, what, subject, detail) SELECT who, 'steer', $1, want FROM asked
)
INSERT INTO {destination} AS d (destination, paused, breaker, rate_limit, changed_by)
SELECT $1, coalesce((want->>'paused')::boolean, false), want->>'breaker', (want->>'rate_limit')::double precision, who
FROM asked
ON CONFLICT (destination) DO UPDATE SET
  paused = CASE WHEN $2::jsonb ? 'paused' THEN excluded.paused ELSE d.paused END,
  breaker = CASE WHEN $2::jsonb ? 'breaker' THEN excluded.breaker ELSE d.breaker END,
  rate_limit = CASE WHEN $2::jsonb ? 'rate_limit' THEN excluded.rate_limit ELSE d.rate_limit END,
  changed_at = now(), changed_by = excluded.changed_by
