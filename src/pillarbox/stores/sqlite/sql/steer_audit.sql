-- Remember who set what for which destination.
INSERT INTO {audit} (who, what, subject, detail) VALUES (:by, 'steer', :destination, :want);
