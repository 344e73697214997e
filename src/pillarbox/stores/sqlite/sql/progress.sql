-- The lane moves again: its crashes are forgotten.
UPDATE {lane} SET crashes = 0 WHERE lane = 0 AND crashes > 0;
