-- Notify at commit if a relay sleeps; always true. A sleeping relay shares the lock that is tried here, and let go at once.
CASE WHEN pg_try_advisory_lock(hashtextextended('{channel}', 0))
  THEN pg_advisory_unlock(hashtextextended('{channel}', 0)) ELSE pg_notify('{channel}', '') IS NOT NULL END
