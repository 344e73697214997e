-- Remember who sent a dead letter again with another content.
INSERT INTO {audit} (who, what, subject, detail)
SELECT :by, 'edit', event_id, :detail FROM {dead} WHERE dead_id IN (SELECT -place FROM {message} WHERE place < 0);
