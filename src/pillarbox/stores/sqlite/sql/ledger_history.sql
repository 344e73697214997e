-- Which of these events were delivered, and where.
SELECT DISTINCT h.event_id, h.destination
  FROM json_each(:ids) AS asked
 CROSS JOIN {history} AS h
 WHERE h.event_id = asked.value;
