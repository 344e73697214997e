-- Drop the procedure with which any program records events in SQL. Later events of its callers fail.

DROP PROCEDURE IF EXISTS {record};
