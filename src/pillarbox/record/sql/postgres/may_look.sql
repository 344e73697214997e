-- May this role see whether a relay sleeps? A refused look would abort the caller's transaction.
SELECT has_column_privilege('{relay}', 'asleep_until', 'SELECT');
