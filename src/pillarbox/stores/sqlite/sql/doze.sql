-- Say until when a relay sleeps.
UPDATE {relay}
   SET asleep_until = coalesce(strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', :seconds)),
                               '9999-12-31T23:59:59.999Z')
 WHERE id = :relay;
