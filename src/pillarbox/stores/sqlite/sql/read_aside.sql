-- Messages put aside for some destinations, in order of their place; each destination is walked no further than a read.
{outside}
SELECT m.row_id AS row_id, {size} AS size
  FROM (SELECT DISTINCT value AS name FROM json_each(:destinations)) AS d
 CROSS JOIN {message} AS m
 WHERE m.row_id IN (SELECT a.row_id
                      FROM {message} AS a
                     WHERE a.held = 'aside' AND a.destination = d.name
                       AND {not_in_hand} {in_range}
                     ORDER BY a.id
                     LIMIT :limit)
 ORDER BY m.id
 LIMIT :limit;
