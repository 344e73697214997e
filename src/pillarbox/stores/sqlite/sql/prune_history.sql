-- Drop what was delivered long ago, the oldest first.
DELETE FROM {history}
 WHERE rowid IN (SELECT rowid FROM {history}
                  WHERE published_at <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', -:seconds))
                  ORDER BY published_at
                  LIMIT :most);
