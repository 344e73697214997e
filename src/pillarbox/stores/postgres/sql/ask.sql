-- Ask the owners of their lanes to do something with waiting messages.
INSERT INTO {request} (action, event_id, destination, delay, asked_by, act)
SELECT $1, e.event_id, e.destination, $4::double precision, coalesce(nullif($5, ''), current_user), $6
FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS e(event_id, destination, n) ORDER BY e.n RETURNING request_id
