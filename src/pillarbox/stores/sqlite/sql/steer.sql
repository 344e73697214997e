-- Set what a person wants for a destination: of paused, breaker and rate_limit those named in :want.
INSERT INTO {destination} AS d (destination, paused, breaker, rate_limit, changed_by)
VALUES (:destination, coalesce(json_extract(:want, '$.paused'), 0), json_extract(:want, '$.breaker'),
        json_extract(:want, '$.rate_limit'), :by)
ON CONFLICT (destination) DO UPDATE
   SET paused = CASE WHEN json_type(:want, '$.paused') IS NULL THEN d.paused ELSE excluded.paused END,
       breaker = CASE WHEN json_type(:want, '$.breaker') IS NULL THEN d.breaker ELSE excluded.breaker END,
       rate_limit = CASE WHEN json_type(:want, '$.rate_limit') IS NULL THEN d.rate_limit ELSE excluded.rate_limit END,
       changed_at = {now},
       changed_by = excluded.changed_by;
