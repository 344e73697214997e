-- What of these was sent before.
SELECT p.event_id, p.destination
  FROM json_each(:messages) AS asked
 CROSS JOIN {processed_event} AS p
 WHERE p.event_id = json_extract(asked.value, '$[0]') AND p.destination = json_extract(asked.value, '$[1]')
   AND p.status = 'SUCCESS';
