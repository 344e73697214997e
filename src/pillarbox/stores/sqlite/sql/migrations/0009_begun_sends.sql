-- The ledger tells a send that was started and never settled from an earlier one of the same event.

ALTER TABLE {processed_event} ADD COLUMN send_number INTEGER;
