-- Enter in the audit what a person did, or begins to do.
INSERT INTO {audit} (who, what, subject, count, detail) VALUES (:by, :what, :subject, :count, :detail)
RETURNING audit_id, at;
