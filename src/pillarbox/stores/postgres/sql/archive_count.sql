-- How much is old enough to go, counted up to a limit; a missing age counts nothing.
SELECT (SELECT count(*) FROM (SELECT FROM {history}
                              WHERE published_at < now() - $1::double precision * interval '1 second' LIMIT $6) AS h),
       (SELECT count(*) FROM (SELECT FROM {dead}
                              WHERE died_at < now() - $2::double precision * interval '1 second' LIMIT $6) AS d),
       (SELECT count(*) FROM (SELECT FROM {inbox_receipt}
                              WHERE received_at < now() - $3::double precision * interval '1 second' LIMIT $6) AS r),
       (SELECT count(*) FROM (SELECT FROM {processed_event} WHERE status <> 'PROCESSING'
                              AND created_at < now() - $4::double precision * interval '1 second' LIMIT $6) AS l),
       (SELECT count(*) FROM (SELECT FROM {audit}
                              WHERE at < now() - $5::double precision * interval '1 second' LIMIT $6) AS a)
