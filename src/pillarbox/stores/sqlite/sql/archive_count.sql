-- How much is old enough to go, counted up to a limit; a missing age counts nothing.
SELECT (SELECT count(*)
          FROM (SELECT 1 FROM {history}
                 WHERE published_at <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', -:history))
                   AND :history IS NOT NULL
                 LIMIT :most)),
       (SELECT count(*)
          FROM (SELECT 1 FROM {dead}
                 WHERE died_at <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', -:dead))
                   AND :dead IS NOT NULL
                 LIMIT :most)),
       (SELECT count(*)
          FROM (SELECT 1 FROM {inbox_receipt}
                 WHERE received_at <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', -:receipts))
                   AND :receipts IS NOT NULL
                 LIMIT :most)),
       (SELECT count(*)
          FROM (SELECT 1 FROM {processed_event}
                 WHERE created_at <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', -:ledger))
                   AND status <> 'PROCESSING' AND :ledger IS NOT NULL
                 LIMIT :most)),
       (SELECT count(*)
          FROM (SELECT 1 FROM {audit}
                 WHERE at <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', -:audit))
                   AND :audit IS NOT NULL
                 LIMIT :most));
