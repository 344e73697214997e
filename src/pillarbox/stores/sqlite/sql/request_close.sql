-- A request is done, with its result.
UPDATE {request} SET done_at = {now}, result = :result WHERE request_id = :request_id;
