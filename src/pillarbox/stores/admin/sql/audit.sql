-- name: add_audit_entry
-- Enter in the audit what an operator did, or begins to do.
INSERT INTO {audit} (who, what, subject, count, detail)
VALUES ({operator}, :what, :subject, :count, :detail{as_json})
RETURNING audit_id, at

-- name: list_audit
-- List a page of the audit, the newest first, scanning a limited number of rows; the last of these is returned whether
-- it matches or not.
SELECT audit_id, at, who, what, subject, count, detail{as_text}, wanted, edge
  FROM (SELECT m.*, n = :scan AS edge,
               m.who = coalesce(:who, m.who) AND m.what = coalesce(:what, m.what) AND m.at >= :since AS wanted
          FROM (SELECT l.*, row_number() OVER (ORDER BY l.audit_id DESC) AS n
                  FROM (SELECT * FROM {audit} WHERE audit_id < :before ORDER BY audit_id DESC LIMIT :scan) AS l) AS m) AS found
 WHERE wanted OR edge
 ORDER BY audit_id DESC
 LIMIT :most

-- name: audit_progress
-- Count in the entry of a bulk action what was done, and reduce what remains.
UPDATE {audit}
   SET count = count + CAST(:done AS {integer_type}), detail = {detail_with_fewer_remaining}
 WHERE audit_id = :bulk_action
