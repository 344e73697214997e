-- Dead letters that wait again are dead no longer.
DELETE FROM {dead} WHERE dead_id IN (SELECT -place FROM {message} WHERE place < 0);
