-- Give what stays the destination it was resolved to, except where that event already waits for it.
UPDATE OR IGNORE {message} AS m
   SET destination = d.destination
  FROM temp.desk AS d
 WHERE m.row_id = d.row_id AND m.destination <> d.destination AND d.outcome IN ('retry', 'blocked', 'hold', 'note');
