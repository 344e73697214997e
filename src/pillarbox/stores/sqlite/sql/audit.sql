-- A page of the audit, the newest first, for a limited number of rows; the last of these is brought whether it is wanted or
-- not.
SELECT audit_id, at, who, what, subject, count, detail, wanted, edge
  FROM (SELECT m.*, n = :walk AS edge,
               m.who = coalesce(:who, m.who) AND m.what = coalesce(:what, m.what) AND m.at >= :since AS wanted
          FROM (SELECT l.*, row_number() OVER (ORDER BY l.audit_id DESC) AS n
                  FROM (SELECT * FROM {audit} WHERE audit_id < :before ORDER BY audit_id DESC LIMIT :walk) AS l) AS m)
 WHERE wanted OR edge
 ORDER BY audit_id DESC
 LIMIT :most;
