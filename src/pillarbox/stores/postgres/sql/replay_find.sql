-- A replay by its number.
SELECT at, count, detail::text FROM {audit} WHERE audit_id = $1 AND what = 'replay'
