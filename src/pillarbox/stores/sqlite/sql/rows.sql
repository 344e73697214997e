-- Fragment: the rows that are fetched.
(SELECT value AS row_id FROM json_each(:rows))
