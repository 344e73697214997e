-- How much is old enough to go, counted up to a limit; a missing age counts nothing.
SELECT (SELECT count(*) FROM (SELECT FROM {history}
                              WHERE published_at < now() - $1::double precision * interval '1 second' LIMIT $3) AS h),
       (SELECT count(*) FROM (SELECT FROM {dead}
                              WHERE died_at < now() - $2::double precision * interval '1 second' LIMIT $3) AS d)
