-- name: deliver
-- Settle delivered messages: move them to the history under the destination they were sent to.
-- with: progress=true
-- variant ledger: ledger_entry=ledger_delivered
WITH {fence}, deleted AS (
  DELETE FROM {message} m
  USING unnest($3::text::text[], $4::text::text[], $5::text::bigint[], $6::text::text[], $7::text::real[])
    AS a(event_id, destination, id, resolved, seconds)
  WHERE {same_row} AND m.lane = ANY (ARRAY(SELECT lane FROM fence))
  RETURNING m.*, a.resolved, a.seconds
), kept AS (
  INSERT INTO {history} (id, event_id, destination, {about}, key, {content}, occurred_at, recorded_at, attempts, deferrals,
    last_error, last_attempt_at, published_at, seconds)
  SELECT id, event_id, resolved, {about}, key, {content}, occurred_at, recorded_at, attempts, deferrals, last_error,
    last_attempt_at, now(), seconds FROM deleted
){ledger_entry}
SELECT ARRAY(SELECT lane::text FROM fence) AS held, (SELECT count(*) FROM deleted) AS count, 0 AS duplicates

-- name: deliver_without_history
-- Settle delivered messages where no history is kept: delete them.
-- with: progress=true
-- variant ledger: ledger_entry=ledger_delivered
WITH {fence}, deleted AS (
  DELETE FROM {message} m
  USING unnest($3::text::text[], $4::text::text[], $5::text::bigint[], $6::text::text[]) AS a(event_id, destination, id, resolved)
  WHERE {same_row} AND m.lane = ANY (ARRAY(SELECT lane FROM fence))
  RETURNING m.event_id, a.resolved
){ledger_entry}
SELECT ARRAY(SELECT lane::text FROM fence) AS held, (SELECT count(*) FROM deleted) AS count, 0 AS duplicates

-- name: dead_letter
-- Settle messages without attempts left: move them to the dead letters.
-- with: progress=true
-- variant ledger: ledger_entry=ledger_failed
WITH {fence}, deleted AS (
  DELETE FROM {message} m
  USING unnest($3::text::text[], $4::text::text[], $5::text::bigint[], $6::text::text[], $7::text::integer[], $8::text::text[],
               $9::text::boolean[], $10::text::real[])
    AS a(event_id, destination, id, resolved, more_attempts, error, sent, seconds)
  WHERE {same_row} AND m.lane = ANY (ARRAY(SELECT lane FROM fence))
  RETURNING m.*, a.resolved, a.more_attempts, a.error, a.sent, a.seconds
), dead_lettered AS (
  INSERT INTO {dead_letter} ({dead_columns})
  SELECT id, event_id, resolved, {about}, ordering_key, key, {content}, {clamp_time}(occurred_at), {clamp_time}(recorded_at),
    attempts + more_attempts, deferrals, error, coalesce(first_failed_at, now()), CASE WHEN sent THEN now() ELSE last_attempt_at END FROM deleted
), recorded_attempts AS (
  INSERT INTO {attempt} (event_id, destination, attempt, counted, error, seconds)
  SELECT event_id, resolved, attempts + more_attempts + deferrals, true, error, seconds FROM deleted WHERE sent
){ledger_entry}
SELECT ARRAY(SELECT lane::text FROM fence) AS held, (SELECT count(*) FROM deleted) AS count, 0 AS duplicates

-- name: requeue
-- Write how messages go on: retry later, waiting, parked, blocked, an attempt counted, or copies for several destinations.
-- with: progress=false duplicate_id=event_id duplicate_destination=resolved
-- variant settled: progress=true
WITH {fence}, asked AS MATERIALIZED (
  SELECT * FROM unnest($3::text::text[], $4::text::text[], $5::text::bigint[], $6::text::text[], $7::text::text[],
                       $8::text::double precision[], $9::text::integer[], $10::text::integer[], $11::text::text[],
                       $12::text::boolean[], $13::text::integer[], $14::text::integer[], $15::text::boolean[], $16::text::real[])
    AS a(event_id, destination, id, resolved, held, delay, more_attempts, more_deferrals, error, stays, attempts, deferrals, recorded, seconds)
), stayed AS (
  UPDATE {message} m SET
    held = CASE WHEN a.stays THEN m.held ELSE a.held END,
    available_at = coalesce(now() + a.delay * interval '1 second', m.available_at),
    attempts = least(m.attempts::bigint + a.more_attempts, {largest_count}), deferrals = least(m.deferrals::bigint + a.more_deferrals, {largest_count}),
    last_error = coalesce(a.error, m.last_error),
    first_failed_at = CASE WHEN a.error IS NULL THEN m.first_failed_at ELSE coalesce(m.first_failed_at, now()) END,
    last_attempt_at = CASE WHEN a.error IS NULL THEN m.last_attempt_at ELSE now() END
  FROM asked a
  WHERE a.resolved = a.destination AND {same_row}
    AND m.lane = ANY (ARRAY(SELECT lane FROM fence))
    -- Written before, and only the answer was lost: it must not be counted again.
    AND (a.attempts IS NULL OR (m.attempts = a.attempts AND m.deferrals = a.deferrals))
  RETURNING m.event_id, m.destination, m.attempts + m.deferrals AS attempt, a.more_deferrals, a.error, a.recorded, a.seconds
), leaving AS MATERIALIZED (
  SELECT event_id, destination, id, bool_or(resolved = destination) AS remains FROM asked
  GROUP BY event_id, destination, id HAVING bool_or(resolved <> destination)
), deleted AS (
  -- A new destination is a new primary key, which may be taken: the row leaves and comes back only if there is room.
  DELETE FROM {message} m USING leaving a
  WHERE NOT a.remains AND {same_row}
    AND m.lane = ANY (ARRAY(SELECT lane FROM fence))
  RETURNING m.*
), copies AS MATERIALIZED (
  SELECT g.*, a.resolved, a.more_attempts, a.error, a.stays, a.delay, a.more_deferrals, a.held AS hold, a.recorded, a.seconds
  FROM (SELECT * FROM deleted
        UNION ALL
        SELECT m.* FROM {message} m JOIN leaving a ON {same_row}
        WHERE a.remains AND m.lane = ANY (ARRAY(SELECT lane FROM fence))) g
  JOIN asked a ON a.event_id = g.event_id AND a.destination = g.destination AND a.id = g.id AND a.resolved <> a.destination
), moved AS (
  INSERT INTO {message} (id, event_id, destination, {about}, ordering_key, {content}, occurred_at, recorded_at, available_at,
    held, attempts, deferrals, last_error, first_failed_at, last_attempt_at)
  SELECT id, event_id, resolved, {about}, ordering_key, {content}, occurred_at, recorded_at,
    coalesce(now() + delay * interval '1 second', available_at),
    CASE WHEN stays THEN held ELSE hold END, least(attempts::bigint + more_attempts, {largest_count}),
    least(deferrals::bigint + more_deferrals, {largest_count}),
    coalesce(error, last_error),
    CASE WHEN error IS NULL THEN first_failed_at ELSE coalesce(first_failed_at, now()) END,
    CASE WHEN error IS NULL THEN last_attempt_at ELSE now() END
  FROM copies
  ON CONFLICT DO NOTHING
  RETURNING id, event_id, destination
), repeats AS MATERIALIZED (
  SELECT c.*,
         EXISTS (SELECT FROM {message} w WHERE w.event_id = c.event_id AND w.destination = c.resolved
                 AND w.payload = c.payload)
         -- Two repeats of one write: the first to come back is not in this statement's snapshot.
         OR EXISTS (SELECT FROM moved v JOIN copies o ON o.event_id = v.event_id AND o.resolved = v.destination
                    AND o.id = v.id
                    WHERE v.event_id = c.event_id AND v.destination = c.resolved AND o.payload = c.payload) AS same
  FROM copies c
  -- Hashed by every plan; an anti-join compares all with all where the planner guesses that there are few.
  WHERE (c.event_id, c.resolved, c.id) NOT IN (SELECT event_id, destination, id FROM moved)
), dead_lettered AS (
  INSERT INTO {dead_letter} ({dead_columns})
  SELECT id, event_id, resolved, {about}, ordering_key, key, {content}, {clamp_time}(occurred_at), {clamp_time}(recorded_at), attempts, deferrals,
    {duplicate_error},
    first_failed_at, last_attempt_at
  FROM repeats WHERE NOT same
), recorded_attempts AS (
  INSERT INTO {attempt} (event_id, destination, attempt, counted, error, seconds)
  SELECT event_id, destination, attempt, more_deferrals = 0, error, seconds FROM stayed WHERE recorded
  UNION ALL
  SELECT event_id, resolved, attempts + deferrals + more_attempts + more_deferrals, more_deferrals = 0, error, seconds FROM copies WHERE recorded
)
SELECT ARRAY(SELECT lane::text FROM fence) AS held,
       (SELECT count(*) FROM stayed) + (SELECT count(*) FROM moved) AS count,
       (SELECT count(*) FROM repeats WHERE same) AS duplicates
