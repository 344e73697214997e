-- name: register_relay
-- Register a relay with its first lease.
INSERT INTO {relay} (id, name, host, version, lease_until)
VALUES ($1, $2, $3, $4, now() + $5 * interval '1 second')

-- name: renew_lease
-- Heartbeat: renew the lease, report what is in flight, the breakers and a stall, and read the breakers of the other relays.
-- No row back: the lease was lost, and with it every lane.
UPDATE {relay} SET lease_until = now() + $2 * interval '1 second',
  in_flight = (SELECT coalesce(jsonb_agg(jsonb_build_object('event_id', h.event_id, 'destination', h.destination,
                                         'since', now() - h.seconds * interval '1 second')), '[]')
             FROM unnest($3::text::text[], $4::text::text[], $5::text::double precision[]) AS h(event_id, destination, seconds)),
  breakers = $6::jsonb,
  stalled = $7,
  -- Only a session of our own tells that this process lives; behind a pooler ($8 differs) the lease alone does.
  session = (SELECT {session_id} FROM pg_stat_get_activity(pg_backend_pid()) a WHERE a.pid = $8)
WHERE id = $1
RETURNING ARRAY(SELECT r.breakers::text FROM {relay} r WHERE {lease_is_valid:r.} AND r.id <> $1 ORDER BY r.id) AS others,
  drain_requested_by IS NOT NULL AS drain

-- name: find_ended_sessions
-- Find relays whose session ended although their lease is valid: they crashed or lost their connection.
SELECT r.id, r.session FROM {relay} r WHERE {lease_is_valid:r.} AND r.id <> $1 AND {session_ended} ORDER BY r.id

-- name: end_leases
-- End the leases of relays whose session has ended, so that other relays need not wait. This acquires no lane.
UPDATE {relay} r SET lease_until = now() - interval '1 millisecond'
FROM unnest($1::text[], $2::text[]) AS ended(id, session)
WHERE r.id = ended.id AND r.session = ended.session AND {session_ended}
RETURNING r.id

-- name: acquire_lanes
-- Acquire lanes that are free or whose owner has crashed, each under a new epoch, without waiting for locks.
WITH alive AS MATERIALIZED (
  SELECT FROM {relay} WHERE id = $1 AND {lease_is_valid}
), dead AS MATERIALIZED (
  SELECT id FROM {relay} WHERE lease_until < now() AND id <> $1 ORDER BY id FOR UPDATE SKIP LOCKED
), deleted AS (
  DELETE FROM {relay} r USING dead d WHERE r.id = d.id
), candidate AS MATERIALIZED (
  SELECT l.lane, l.epoch FROM {lane} l
  WHERE l.owner IS NULL OR l.owner = ANY (ARRAY(SELECT id FROM dead))
     OR NOT EXISTS (SELECT FROM {relay} r WHERE r.id = l.owner)
), free AS MATERIALIZED (
  -- The epoch again: a lane that a relay unknown to this snapshot took meanwhile must not seem free.
  SELECT l.lane FROM {lane} l JOIN candidate c ON c.lane = l.lane AND c.epoch = l.epoch
  WHERE EXISTS (SELECT FROM alive)
  ORDER BY l.lane LIMIT $2 FOR NO KEY UPDATE OF l SKIP LOCKED
)
UPDATE {lane} l SET owner = $1, epoch = l.epoch + 1, crashes = l.crashes + (l.owner IS NOT NULL)::integer
FROM free WHERE l.lane = free.lane
RETURNING l.lane, l.epoch, l.crashes

-- name: release_lanes
-- Release lanes. A lane under another epoch belongs to another relay and stays.
WITH mine AS MATERIALIZED (
  SELECT l.lane FROM {lane} l JOIN unnest($2::text::smallint[], $3::text::bigint[]) AS e(lane, epoch)
    ON l.lane = e.lane AND l.epoch = e.epoch
  WHERE l.owner = $1 ORDER BY l.lane FOR NO KEY UPDATE OF l
)
UPDATE {lane} l SET owner = NULL FROM mine WHERE l.lane = mine.lane

-- name: clear_crashes
-- Forget the crashes of former owners of lanes. A lane that is locked is being settled, which forgets them, too.
WITH mine AS MATERIALIZED (
  SELECT l.lane FROM {lane} l JOIN unnest($1::text::smallint[], $2::text::bigint[]) AS e(lane, epoch)
    ON l.lane = e.lane AND l.epoch = e.epoch
  WHERE l.crashes > 0 ORDER BY l.lane FOR NO KEY UPDATE OF l SKIP LOCKED
)
UPDATE {lane} l SET crashes = 0 FROM mine WHERE l.lane = mine.lane

-- name: leave
-- Release every lane of a relay and delete the relay.
WITH mine AS MATERIALIZED (
  SELECT l.lane FROM {lane} l WHERE l.owner = $1 ORDER BY l.lane FOR NO KEY UPDATE OF l
), freed AS (
  UPDATE {lane} l SET owner = NULL FROM mine WHERE l.lane = mine.lane
)
DELETE FROM {relay} WHERE id = $1

-- fragment: fence
-- Lock the lanes in their order and compare epochs. A condition on the epoch without the lock does not fence.
fence AS MATERIALIZED (
  SELECT l.lane, l.crashes FROM {lane} l JOIN unnest($1::text::smallint[], $2::text::bigint[]) AS e(lane, epoch)
    ON l.lane = e.lane AND l.epoch = e.epoch
  ORDER BY l.lane FOR NO KEY UPDATE OF l
), reset_crashes AS (
  -- Progress: the crashes of former owners no longer matter.
  UPDATE {lane} l SET crashes = 0 WHERE {progress} AND l.lane = ANY (ARRAY(SELECT lane FROM fence WHERE crashes > 0))
)

-- fragment: session_id
-- What identifies the session of a row of pg_stat_get_activity.
a.pid || ':' || extract(epoch FROM a.backend_start)

-- fragment: session_ended
-- Whether the session of relay r has ended. If the role lacks the permission to see when another role's session began, the session
-- counts as alive and the lease decides. After a restart of the server every relay needs some seconds to begin another session.
r.session IS NOT NULL
  AND pg_postmaster_start_time() < greatest(now() - interval '5 seconds', to_timestamp(split_part(r.session, ':', 2)::float8))
  AND NOT EXISTS (SELECT FROM pg_stat_get_activity(split_part(r.session, ':', 1)::integer) a
                  WHERE a.backend_start IS NULL OR {session_id} = r.session)
