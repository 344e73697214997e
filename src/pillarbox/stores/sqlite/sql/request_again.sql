-- A waiting message comes now or later. It counts a try at least, so that it stays the head of its line meanwhile.
UPDATE {message}
   SET held = NULL,
       available_at = coalesce(strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', :delay)),
                               '9999-12-31T23:59:59.999Z'),
       attempts = CASE :action WHEN 'retry' THEN 0 ELSE attempts END,
       tries = max(tries, 1)
 WHERE row_id = :row_id;
