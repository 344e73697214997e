-- name: add_audit_entry
-- Enter in the audit what an operator did, or begins to do.
INSERT INTO {audit} (who, what, subject, count, detail)
VALUES ({operator}, :what, :subject, :count, :detail{as_json})
RETURNING audit_id, at

-- name: list_audit
-- A page of the audit, the newest first, for a limited number of rows; the last of these is returned whether it matches or
-- not.
SELECT audit_id, at, who, what, subject, count, detail{as_text}, wanted, edge
  FROM (SELECT m.*, n = :scan AS edge,
               m.who = coalesce(:who, m.who) AND m.what = coalesce(:what, m.what) AND m.at >= :since AS wanted
          FROM (SELECT l.*, row_number() OVER (ORDER BY l.audit_id DESC) AS n
                  FROM (SELECT * FROM {audit} WHERE audit_id < :before ORDER BY audit_id DESC LIMIT :scan) AS l) AS m) AS found
 WHERE wanted OR edge
 ORDER BY audit_id DESC
 LIMIT :most

-- name: replay_find
-- A replay by its number.
SELECT at, count, detail{as_text} FROM {audit} WHERE audit_id = :number AND what = 'replay'

-- name: statistics_since
-- Samples of the last so many seconds, the newest first, up to a limit.
SELECT at, relay, destination, statistics{as_text} FROM {sample} WHERE at >= {seconds_ago} ORDER BY at DESC LIMIT :most
