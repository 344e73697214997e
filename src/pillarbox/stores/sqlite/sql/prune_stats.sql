-- Drop samples that no chart shows any more, the oldest first.
DELETE FROM {stat}
 WHERE rowid IN (SELECT rowid FROM {stat}
                  WHERE at <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', -:seconds))
                  ORDER BY at
                  LIMIT :most);
