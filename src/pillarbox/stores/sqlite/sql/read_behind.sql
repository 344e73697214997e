-- What waits behind in some lines and before anything that holds it back, each line in order.
{outside}
SELECT m.row_id AS row_id, {size} AS size
  FROM (SELECT s.key, s.destination, {blocker} AS blocker
          FROM (SELECT DISTINCT json_extract(value, '$[0]') AS key, json_extract(value, '$[1]') AS destination
                  FROM json_each(:slots)) AS s) AS line
 CROSS JOIN {message} AS m
 WHERE m.row_id IN (SELECT b.row_id
                      FROM {message} AS b
                     WHERE b.held = 'behind' AND b.key = line.key AND b.destination = line.destination
                       AND b.id < line.blocker AND {not_in_hand} {in_range}
                     ORDER BY b.id
                     LIMIT :quota)
 ORDER BY m.id
 LIMIT :limit;
