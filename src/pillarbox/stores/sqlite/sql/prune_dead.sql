-- Drop dead letters nobody came for, the oldest first.
DELETE FROM {dead}
 WHERE rowid IN (SELECT rowid FROM {dead}
                  WHERE died_at <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', -:seconds))
                  ORDER BY died_at
                  LIMIT :most);
