-- Ask producers not to notify.
SELECT pg_advisory_unlock_shared(hashtextextended('{channel}', 0))
