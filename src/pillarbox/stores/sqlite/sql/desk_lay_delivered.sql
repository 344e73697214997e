-- Lay delivered messages on the desk, by place: [[id, destination, new destination, seconds], …]; see desk_lay.sql.
INSERT INTO temp.desk (row_id, destination, outcome, charge, noted, seconds)
SELECT m.row_id, v.destination, 'delivered', 0, 0, v.seconds
  FROM (SELECT json_extract(value, '$[0]') AS id, json_extract(value, '$[1]') AS waits_for,
               json_extract(value, '$[2]') AS destination, json_extract(value, '$[3]') AS seconds
          FROM json_each(:messages)) AS v
 CROSS JOIN {message} AS m
 WHERE m.row_id = coalesce((SELECT c.row_id FROM {message} AS c
                             WHERE c.place = v.id AND c.destination = v.waits_for), v.id)
   AND m.id = v.id AND m.destination = v.waits_for;
