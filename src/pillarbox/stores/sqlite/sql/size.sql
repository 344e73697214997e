-- Fragment: bytes of m.payload and m.headers; of a BLOB SQLite tells them without reading it.
CASE typeof(m.payload) WHEN 'blob' THEN length(m.payload) ELSE length(CAST(m.payload AS BLOB)) END
+ length(CAST(m.headers AS BLOB))
