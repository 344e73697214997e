-- What operators see and ask for: samples over time, a relay that is to drain, a head that is to be a dead letter.

ALTER TABLE {sample} DROP CONSTRAINT "{prefix}sample_pkey";
ALTER TABLE {sample} RENAME COLUMN minute TO at;
ALTER TABLE {sample} ALTER COLUMN at SET DEFAULT now();
CREATE INDEX "{prefix}sample_at_idx" ON {sample} (at);
ALTER TABLE {relay} ADD COLUMN drain_requested_by text;
ALTER TABLE {request} DROP CONSTRAINT "{prefix}request_action_check";
ALTER TABLE {request} ADD CONSTRAINT "{prefix}request_action_ck" CHECK (action IN ('retry', 'discard', 'reschedule', 'dead_letter'));
