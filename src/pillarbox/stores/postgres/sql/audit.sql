-- A page of the audit, the newest first: at most $6 rows are looked at from number $1 on; the last of these is brought
-- whether it is wanted or not.
SELECT m.audit_id, m.at, m.who, m.what, m.subject, m.count, m.detail::text, w.wanted, m.n = $6 AS edge
FROM (SELECT m.*, row_number() OVER (ORDER BY m.audit_id DESC) AS n FROM (
        SELECT * FROM {audit} m WHERE m.audit_id < $1 ORDER BY m.audit_id DESC LIMIT $6) m) m
CROSS JOIN LATERAL (SELECT m.who = coalesce($2, m.who) AND m.what = coalesce($3, m.what) AND m.at >= $4) AS w(wanted)
WHERE w.wanted OR m.n = $6 ORDER BY m.n LIMIT $5
