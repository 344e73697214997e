-- Bounds for what a plain INSERT can give. A trigger has them, since SQLite adds no CHECK to a table that is there.

-- AFTER, because only then a row that was given no number has one. AUTOINCREMENT goes on from the largest row_id there was, and
-- after 2^63 - 1 it refuses every INSERT: nobody may jump there. (A statement with OR IGNORE jumps over rows that it leaves
-- out.) A relay adds to the counters, and their sum must remain an integer.
CREATE TRIGGER "{prefix}message_bounds" AFTER INSERT ON {message}
BEGIN
  SELECT CASE
    WHEN NEW.row_id < 1
         OR NEW.row_id - 1000000 > max(coalesce((SELECT max(o.row_id) FROM {message} AS o WHERE o.row_id < NEW.row_id), 0),
                                       coalesce((SELECT s.seq FROM sqlite_sequence AS s WHERE s.name = '{prefix}message'), 0))
      THEN RAISE(ABORT, 'constraint failed: row_id is far from the others; leave it out')
    -- Only copies of one event share a place, and a dead letter that is sent again names its number for a moment.
    WHEN NEW.shared_id IS NOT NULL
         AND NOT EXISTS (SELECT 1 FROM {message} AS o
                          WHERE o.event_id = NEW.event_id AND o.row_id <> NEW.row_id AND o.id = NEW.shared_id)
         AND NOT EXISTS (SELECT 1 FROM {dead_letter} AS d
                          WHERE d.dead_letter_id = -NEW.shared_id AND d.event_id = NEW.event_id AND d.destination = NEW.destination)
      THEN RAISE(ABORT, 'constraint failed: shared_id belongs to another event; leave it out')
    WHEN NEW.attempts NOT BETWEEN 0 AND 1000000000 OR NEW.deferrals NOT BETWEEN 0 AND 1000000000
      THEN RAISE(ABORT, 'constraint failed: attempts and deferrals lie between 0 and 1000000000')
    -- No fetch finds a message that waits behind others of no key.
    WHEN NEW.held = 'waiting' AND NEW.key IS NULL THEN RAISE(ABORT, 'constraint failed: held is behind without a key')
    WHEN typeof(NEW.last_error) NOT IN ('text', 'null') THEN RAISE(ABORT, 'constraint failed: last_error is no text')
    WHEN NEW.first_failed_at NOT GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9].[0-9][0-9][0-9]Z'
         OR NEW.last_attempt_at NOT GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9].[0-9][0-9][0-9]Z'
      THEN RAISE(ABORT, 'constraint failed: first_failed_at and last_attempt_at are written 2026-01-31T23:59:59.999Z')
  END;
END;
UPDATE {message} SET attempts = min(max(attempts, 0), 1000000000), deferrals = min(max(deferrals, 0), 1000000000)
 WHERE attempts NOT BETWEEN 0 AND 1000000000 OR deferrals NOT BETWEEN 0 AND 1000000000;
UPDATE {message} SET held = NULL WHERE held = 'waiting' AND key IS NULL;
