-- Enter in the audit what a person did, or begins to do.
INSERT INTO {audit} (who, what, subject, count, detail)
VALUES (coalesce(nullif($1, ''), current_user), $2, $3, $4, $5::jsonb) RETURNING audit_id, at
