-- Drop failed attempts older than everything they could explain, the oldest first.
DELETE FROM {attempt}
 WHERE rowid IN (SELECT rowid FROM {attempt}
                  WHERE attempted_at <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', -:seconds))
                  ORDER BY attempted_at
                  LIMIT :most);
