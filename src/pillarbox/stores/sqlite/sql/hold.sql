-- Put what is on the desk out of the reader's way.
UPDATE {message} SET held = :held WHERE row_id IN (SELECT row_id FROM temp.desk WHERE outcome = 'hold');
