-- Each goes to the end of its line: its own row is its place.
UPDATE {message} SET place = NULL WHERE place < 0;
