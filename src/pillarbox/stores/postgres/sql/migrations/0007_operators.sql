-- What operators see and ask for: samples over time, a relay that is to drain, a head that is to be a dead letter.

ALTER TABLE {stat} DROP CONSTRAINT "{prefix}stat_pkey";
ALTER TABLE {stat} RENAME COLUMN minute TO at;
ALTER TABLE {stat} ALTER COLUMN at SET DEFAULT now();
CREATE INDEX "{prefix}stat_at_idx" ON {stat} (at);
ALTER TABLE {relay} ADD COLUMN drain_asked_by text;
ALTER TABLE {request} DROP CONSTRAINT "{prefix}request_action_check";
ALTER TABLE {request} ADD CONSTRAINT "{prefix}request_action_ck" CHECK (action IN ('retry', 'discard', 'reschedule', 'bury'));
