-- What failed waits: a retry for its time, a blocked one for a person.
UPDATE {message} AS m
   SET held = CASE d.outcome WHEN 'blocked' THEN 'blocked' END,
       available_at = CASE d.outcome
         WHEN 'blocked' THEN m.available_at
         ELSE coalesce(strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', d.delay)),
                       '9999-12-31T23:59:59.999Z')
       END,
       attempts = min(m.attempts + d.charge - d.noted, 1000000000),
       tries = min(m.tries + (d.outcome = 'retry' AND NOT d.charge), 1000000000),
       last_error = d.error,
       first_failed_at = coalesce(m.first_failed_at, {now}),
       last_attempt_at = CASE WHEN d.outcome = 'retry' OR d.charge THEN {now} ELSE m.last_attempt_at END
  FROM temp.desk AS d
 WHERE m.row_id = d.row_id AND d.outcome IN ('retry', 'blocked');
