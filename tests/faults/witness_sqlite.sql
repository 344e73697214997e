-- A witness in the database: it records every relay that changes or removes a message while another relay owns the lane.
-- Every relay defines `fault_name()` on its connection; what a relay is called is kept after its row is deleted.
CREATE TABLE fault_relay (id TEXT PRIMARY KEY NOT NULL, name TEXT NOT NULL);
CREATE TABLE fault_stale (event_id TEXT NOT NULL, written_by TEXT NOT NULL, owned_by TEXT NOT NULL);

CREATE TRIGGER fault_note_relay AFTER INSERT ON outbox_relay
BEGIN
  INSERT OR IGNORE INTO fault_relay VALUES (NEW.id, NEW.name);
END;

CREATE TRIGGER fault_note_removal AFTER DELETE ON outbox_message
BEGIN
  INSERT INTO fault_stale
  SELECT OLD.event_id, fault_name(), r.name FROM outbox_lane AS l JOIN fault_relay AS r ON r.id = l.owner
   WHERE r.name <> fault_name();
END;
CREATE TRIGGER fault_note_change AFTER UPDATE ON outbox_message
BEGIN
  INSERT INTO fault_stale
  SELECT OLD.event_id, fault_name(), r.name FROM outbox_lane AS l JOIN fault_relay AS r ON r.id = l.owner
   WHERE r.name <> fault_name();
END;
