-- Enter a replay in the audit; nothing is copied yet.
INSERT INTO {audit} (who, what, subject, count, detail)
VALUES (coalesce(nullif($1, ''), current_user), 'replay', $2, 0, $3::jsonb) RETURNING audit_id, at
