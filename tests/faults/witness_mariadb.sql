-- A witness in the database: it records every session that changes or removes a message of a lane that another relay owns.
-- Every relay is a user of its own name; what a relay is called is kept after its row is deleted.
CREATE TABLE fault_relay (id VARCHAR(200) PRIMARY KEY, name VARCHAR(200) NOT NULL) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;
CREATE TABLE fault_stale (event_id VARCHAR(200) NOT NULL, written_by VARCHAR(200) NOT NULL, owned_by VARCHAR(200) NOT NULL);

CREATE TRIGGER fault_note_relay AFTER INSERT ON outbox_relay FOR EACH ROW
  INSERT IGNORE INTO fault_relay VALUES (NEW.id, NEW.name);

-- The lock reads what is committed by now, not what the recorded statement saw when it began. A settlement has it already.
CREATE TRIGGER fault_note_removal AFTER DELETE ON outbox_message FOR EACH ROW
  INSERT INTO fault_stale
  SELECT OLD.event_id, substring_index(user(), '@', 1), r.name
  FROM outbox_lane AS l JOIN fault_relay AS r ON r.id = l.owner
  WHERE l.lane = OLD.lane AND r.name <> substring_index(user(), '@', 1)
  LOCK IN SHARE MODE;
CREATE TRIGGER fault_note_change AFTER UPDATE ON outbox_message FOR EACH ROW
  INSERT INTO fault_stale
  SELECT OLD.event_id, substring_index(user(), '@', 1), r.name
  FROM outbox_lane AS l JOIN fault_relay AS r ON r.id = l.owner
  WHERE l.lane = OLD.lane AND r.name <> substring_index(user(), '@', 1)
  LOCK IN SHARE MODE;
