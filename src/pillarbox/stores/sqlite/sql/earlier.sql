-- For each probe [key, destination, id], in order: does an earlier message wait in its line?
SELECT {behind}
  FROM (SELECT key AS turn, json_extract(value, '$[0]') AS key, json_extract(value, '$[1]') AS destination,
               json_extract(value, '$[2]') AS id
          FROM json_each(:probes)) AS m
 ORDER BY m.turn;
