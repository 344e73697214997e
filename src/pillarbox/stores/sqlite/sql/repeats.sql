-- Messages whose event already waits for their new destination: a repeat goes, and with other bytes it is given up.
UPDATE temp.desk AS d
   SET outcome = CASE WHEN CAST(o.payload AS BLOB) = CAST(m.payload AS BLOB) THEN 'repeat' ELSE 'dead' END,
       charge = 0,
       error = 'the same event id already waits for ' || d.destination
               || ' with other bytes; give each event an id of its own'
  FROM {message} AS m
 CROSS JOIN {message} AS o
 WHERE m.row_id = d.row_id AND m.destination <> d.destination
   AND d.outcome IN ('retry', 'blocked', 'hold', 'note', 'split')
   AND o.event_id = m.event_id AND o.destination = d.destination
   AND (d.outcome <> 'split' OR o.id <> m.id)
RETURNING outcome;
