-- Settle messages given up on: they leave, whole, for the dead letters.
WITH {fence}, gone AS (
  DELETE FROM {message} m
  USING unnest($3::text::text[], $4::text::text[], $5::text::bigint[], $6::text::text[], $7::text::integer[], $8::text::text[],
               $9::text::boolean[], $10::text::real[])
    AS a(event_id, destination, id, resolved, charged, error, sent, seconds)
  WHERE {same_row} AND m.lane = ANY (ARRAY(SELECT lane FROM fence))
  RETURNING m.*, a.resolved, a.charged, a.error, a.sent, a.seconds
), buried AS (
  INSERT INTO {dead} (id, event_id, destination, event_type, aggregate_type, aggregate_id, ordering_key, key, payload,
    content_type, headers, schema_version, correlation_id, causation_id, trace_id, occurred_at, recorded_at, attempts, tries,
    error, first_failed_at, last_attempt_at)
  SELECT id, event_id, resolved, event_type, aggregate_type, aggregate_id, ordering_key, key, payload, content_type, headers,
    schema_version, correlation_id, causation_id, trace_id, {readable}(occurred_at), {readable}(recorded_at),
    attempts + charged, tries, error, coalesce(first_failed_at, now()), CASE WHEN sent THEN now() ELSE last_attempt_at END FROM gone
), noted AS (
  INSERT INTO {attempt} (event_id, destination, attempt, charged, error, seconds)
  SELECT event_id, resolved, attempts + charged + tries, true, error, seconds FROM gone WHERE sent
){ledger}
SELECT ARRAY(SELECT lane::text FROM fence) AS held, (SELECT count(*) FROM gone) AS count, 0 AS duplicates
