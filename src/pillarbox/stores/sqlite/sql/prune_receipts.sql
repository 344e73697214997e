-- Drop receipts of the inbox that no repeat can meet any more, the oldest first.
DELETE FROM {inbox_receipt}
 WHERE rowid IN (SELECT rowid FROM {inbox_receipt}
                  WHERE received_at <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', -:seconds))
                  ORDER BY received_at
                  LIMIT :most);
