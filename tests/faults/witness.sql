-- A witness in the database: it records every session that changes or removes a message of a lane that another relay owns.
-- Every relay says its name in the setting `faults.relay`; what a relay is called is kept after its row is deleted.
CREATE TABLE fault_relay (id text PRIMARY KEY, name text NOT NULL);
CREATE TABLE fault_stale (event_id text NOT NULL, written_by text NOT NULL, owned_by text NOT NULL);

CREATE FUNCTION fault_note_relay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO public.fault_relay VALUES (NEW.id, NEW.name) ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
CREATE TRIGGER fault_note_relay AFTER INSERT ON outbox_relay FOR EACH ROW EXECUTE FUNCTION fault_note_relay();

-- Each statement in here sees what is committed by now, not what the recorded statement saw when it began.
CREATE FUNCTION fault_note_stale() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO public.fault_stale
  SELECT t.event_id, current_setting('faults.relay'), r.name
  FROM touched t JOIN public.outbox_lane l ON l.lane = t.lane JOIN public.fault_relay r ON r.id = l.owner
  WHERE r.name <> current_setting('faults.relay');
  RETURN NULL;
END $$;
CREATE TRIGGER fault_note_removal AFTER DELETE ON outbox_message REFERENCING OLD TABLE AS touched
  FOR EACH STATEMENT EXECUTE FUNCTION fault_note_stale();
CREATE TRIGGER fault_note_change AFTER UPDATE ON outbox_message REFERENCING OLD TABLE AS touched
  FOR EACH STATEMENT EXECUTE FUNCTION fault_note_stale();
