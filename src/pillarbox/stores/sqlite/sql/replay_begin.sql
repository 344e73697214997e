-- Enter a replay in the audit; nothing is copied yet.
INSERT INTO {audit} (who, what, subject, count, detail) VALUES (:by, 'replay', :to, 0, :detail)
RETURNING audit_id, at;
