-- Note a try; the message stays where it is.
UPDATE {message}
   SET attempts = attempts + :charge - :noted, tries = tries + NOT :charge, last_error = :error,
       first_failed_at = coalesce(first_failed_at, {now}), last_attempt_at = {now}
 WHERE row_id IN (SELECT row_id FROM temp.desk WHERE outcome = 'note');
