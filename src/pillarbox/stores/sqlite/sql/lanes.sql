-- name: register_relay
-- Register a relay with its first lease.
INSERT INTO {relay} (id, name, host, version, lease_until, lease_length, lease_end)
VALUES (:id, :name, :host, :version,
        {future:lease},
        :lease, elapsed() + :lease)
ON CONFLICT (id) DO UPDATE SET lease_until = excluded.lease_until, lease_length = excluded.lease_length,
                               lease_end = excluded.lease_end

-- name: renew_lease
-- Heartbeat: renew the lease, and report what is in flight since when, the breakers and a stall.
UPDATE {relay}
   SET lease_until = {future:lease},
       lease_length = :lease,
       lease_end = elapsed() + :lease,
       in_flight = (SELECT json_group_array(json_array(
                           json_extract(value, '$[0]'), json_extract(value, '$[1]'),
                           strftime({time_format}, 'now', printf('%+.3f seconds', -json_extract(value, '$[2]')))))
                    FROM json_each(:in_flight)),
       breakers = :breakers,
       stalled = :stalled,
       session = :session
 WHERE id = :relay

-- name: other_breakers
-- The breakers of each other live relay.
SELECT breakers FROM {relay} WHERE id <> :relay AND {lease_is_valid} ORDER BY id

-- name: other_sessions
-- List every other relay with a valid lease that holds a lock.
SELECT id, session FROM {relay} WHERE id <> :relay AND {lease_is_valid} AND session IS NOT NULL ORDER BY id

-- name: end_lease
-- End the lease of a relay whose lock is free, so that other relays need not wait. This acquires no lane.
UPDATE {relay} SET lease_until = {now}, lease_length = 0, lease_end = elapsed() WHERE id = :relay AND session = :session

-- name: is_alive
-- Does this relay have a valid lease?
SELECT count(*) FROM {relay} WHERE id = :relay AND {lease_is_valid}

-- name: delete_expired_relays
-- Delete relays whose lease has ended: their next heartbeat finds nothing.
DELETE FROM {relay} WHERE NOT {lease_is_valid} AND id <> :relay
RETURNING id

-- name: acquire_lanes
-- Acquire the lane if it is free or its owner is gone, under a new epoch; count a crash if the owner did not leave.
UPDATE {lane} AS l
   SET owner = :relay, epoch = l.epoch + 1, crashes = l.crashes + (l.owner IS NOT NULL)
 WHERE l.owner IS NULL OR NOT EXISTS (SELECT 1 FROM {relay} AS r WHERE r.id = l.owner)
RETURNING lane, epoch, crashes

-- name: release_lanes
-- Release the lane. Under another epoch it belongs to another relay and stays.
UPDATE {lane} SET owner = NULL WHERE lane = 0 AND owner = :relay AND epoch = :epoch

-- name: release_all_lanes
-- Release every lane of a relay.
UPDATE {lane} SET owner = NULL WHERE owner = :relay

-- name: leave
-- Delete a relay.
DELETE FROM {relay} WHERE id = :relay

-- name: drain_requested
-- Was this relay asked to drain?
SELECT drain_requested_by IS NOT NULL FROM {relay} WHERE id = :relay

-- name: lane_epoch
-- The current epoch of the lane, read inside the transaction that writes, which is the only writer.
SELECT epoch FROM {lane} WHERE lane = 0

-- name: clear_crashes
-- Reset the crashes of the lane, because it makes progress.
UPDATE {lane} SET crashes = 0 WHERE lane = 0 AND crashes > 0
