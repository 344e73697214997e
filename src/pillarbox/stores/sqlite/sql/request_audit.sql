-- Remember who had what done to which event.
INSERT INTO {audit} (who, what, subject, detail)
VALUES (:asked_by, :action, :event_id, json_object('destination', :destination, 'request_id', :request_id));
