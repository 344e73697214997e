-- Who answers, to whom, and may it be written to?
SELECT current_setting('server_version') AS version, current_database() AS database, current_user AS role,
       pg_is_in_recovery() AS standby, current_setting('default_transaction_read_only')::boolean AS read_only
