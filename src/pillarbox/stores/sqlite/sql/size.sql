-- Fragment: bytes of m.payload, m.headers and the texts without a bound; of a BLOB SQLite tells them without reading it.
CASE typeof(m.payload) WHEN 'blob' THEN length(m.payload) ELSE length(CAST(m.payload AS BLOB)) END
+ length(CAST(m.headers AS BLOB))
+ coalesce(length(CAST(m.correlation_id AS BLOB)), 0) + coalesce(length(CAST(m.causation_id AS BLOB)), 0)
+ coalesce(length(CAST(m.trace_id AS BLOB)), 0)
