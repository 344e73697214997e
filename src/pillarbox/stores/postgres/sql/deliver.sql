-- Settle delivered messages: they leave for the history under the destination they went to.
WITH {fence}, gone AS (
  DELETE FROM {message} m
  USING unnest($3::text::text[], $4::text::text[], $5::text::bigint[], $6::text::text[], $7::text::real[])
    AS a(event_id, destination, id, resolved, seconds)
  WHERE {same_row} AND m.lane = ANY (ARRAY(SELECT lane FROM fence))
  RETURNING m.*, a.resolved, a.seconds
), kept AS (
  INSERT INTO {history} (id, event_id, destination, event_type, aggregate_type, aggregate_id, key, payload, content_type,
    headers, schema_version, correlation_id, causation_id, trace_id, occurred_at, recorded_at, attempts, tries, last_error,
    last_attempt_at, published_at, seconds)
  SELECT id, event_id, resolved, event_type, aggregate_type, aggregate_id, key, payload, content_type, headers,
    schema_version, correlation_id, causation_id, trace_id, occurred_at, recorded_at, attempts, tries, last_error,
    last_attempt_at, now(), seconds FROM gone
){ledger}
SELECT ARRAY(SELECT lane::text FROM fence) AS held, (SELECT count(*) FROM gone) AS count, 0 AS duplicates
