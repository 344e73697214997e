-- The originals go, except one that is among its own destinations.
DELETE FROM {message}
 WHERE row_id IN (SELECT row_id FROM temp.desk)
   AND NOT EXISTS (SELECT 1 FROM temp.desk AS d
                    WHERE d.row_id = {message}.row_id AND d.destination = {message}.destination);
