-- Empty the desk.
DELETE FROM temp.desk;
