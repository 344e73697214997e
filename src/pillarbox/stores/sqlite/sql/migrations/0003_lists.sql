-- Lists for people: by the time of recording, by key, by type and by number.

CREATE INDEX {prefix}message_recorded_idx ON {message} (recorded_at, id);
CREATE INDEX {prefix}message_blocked_idx ON {message} (recorded_at, id) WHERE held = 'blocked';
CREATE INDEX {prefix}history_recorded_idx ON {history} (recorded_at, id);
CREATE INDEX {prefix}history_type_idx ON {history} (event_type, recorded_at, id);
CREATE INDEX {prefix}history_key_idx ON {history} (key, recorded_at, id);
CREATE INDEX {prefix}dead_letter_recorded_idx ON {dead_letter} (recorded_at, id);
CREATE INDEX {prefix}dead_letter_type_idx ON {dead_letter} (event_type, dead_letter_id);
CREATE INDEX {prefix}dead_letter_key_idx ON {dead_letter} (key, dead_letter_id);
