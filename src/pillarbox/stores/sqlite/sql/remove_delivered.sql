-- What was delivered and is not kept, as {"destination": [id, …], …}, waits no longer; nothing goes under another epoch. A transaction of
-- its own, which locks everybody out before it compares. How a place is found see desk_lay.sql.
DELETE FROM {message}
 WHERE (SELECT l.epoch FROM {lane} AS l WHERE l.lane = 0) = :epoch
   AND row_id IN (SELECT m.row_id
                    FROM (SELECT i.value AS id, d.key AS destination
                            FROM json_each(:places) AS d CROSS JOIN json_each(d.value) AS i) AS v
                   CROSS JOIN {message} AS m
                   WHERE m.row_id = coalesce((SELECT c.row_id FROM {message} AS c
                                               WHERE c.place = v.id AND c.destination = v.destination), v.id)
                     AND m.id = v.id AND m.destination = v.destination);
