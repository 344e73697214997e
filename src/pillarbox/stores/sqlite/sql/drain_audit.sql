-- Remember who asked which relay to drain.
INSERT INTO {audit} (who, what, subject) VALUES (:by, 'drain', :id);
