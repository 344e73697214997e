-- Make writers of the same keys wait for each other until they commit; always in the same order, so none deadlock.
SELECT pg_advisory_xact_lock(lock)
FROM (SELECT DISTINCT hashtextextended('{channel} ' || key, 0) AS lock
      FROM unnest($1::text[]) AS given (key) ORDER BY lock) AS sorted;
