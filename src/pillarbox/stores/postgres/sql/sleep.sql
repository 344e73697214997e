-- Ask producers to notify: they try this lock exclusively. The server releases it when the session ends.
SELECT pg_advisory_lock_shared(hashtextextended('{channel}', 0))
