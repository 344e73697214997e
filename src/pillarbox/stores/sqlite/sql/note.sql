-- Note a try; the message stays where it is.
UPDATE {message}
   SET attempts = min(attempts + :charge - :noted, 1000000000), tries = min(tries + NOT :charge, 1000000000), last_error = :error,
       first_failed_at = coalesce(first_failed_at, {now}), last_attempt_at = {now}
 WHERE row_id IN (SELECT row_id FROM temp.desk WHERE outcome = 'note');
