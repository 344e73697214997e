-- Drop, in one bite, receipts of the inbox that no repeat can meet any more.
WITH gone AS (
  DELETE FROM {inbox_receipt} WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM {inbox_receipt} WHERE received_at < now() - $1 * interval '1 second' LIMIT $2)) RETURNING 1
) SELECT count(*) FROM gone
