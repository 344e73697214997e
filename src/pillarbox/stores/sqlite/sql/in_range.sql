-- Fragment: {row} lies in the range of times, and nothing before it in its key lies outside.
AND (:after IS NULL OR {row}.recorded_at >= :after) AND (:before IS NULL OR {row}.recorded_at < :before)
AND NOT EXISTS (SELECT 1 FROM outside AS o
                 WHERE o.key = {row}.key AND o.id < {row}.id
                   AND ({row}.destination = '' OR o.destination IN ({row}.destination, '')))
