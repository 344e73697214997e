-- A person wants these dead letters sent, whatever the ledger says.
UPDATE {processed_event} SET status = 'PROCESSING', begun = NULL, updated_at = {now}
 WHERE (event_id, destination) IN (SELECT event_id, destination FROM {message} WHERE place < 0);
