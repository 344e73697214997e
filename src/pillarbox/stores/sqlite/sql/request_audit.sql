-- Remember who had what done to which event.
INSERT INTO {audit} (who, what, subject, detail)
VALUES (:asked_by, :action, :event_id,
        CASE :action
          WHEN 'reschedule' THEN json_object('destination', :destination, 'request_id', :request_id, 'delay', :delay)
          ELSE json_object('destination', :destination, 'request_id', :request_id)
        END);
