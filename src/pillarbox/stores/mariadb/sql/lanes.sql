-- name: register_relay
-- Register a relay with its first lease.
INSERT INTO {relay} (id, name, host, version, lease_until)
VALUES (:id, :name, :host, :version, {now} + INTERVAL :lease MICROSECOND)
ON DUPLICATE KEY UPDATE lease_until = VALUES(lease_until)

-- name: hold_session_lock
-- Hold a lock that the server releases when this session ends: other relays see by it that this one has ended. The name of the
-- session has the second in which it got the lock.
SELECT get_lock(:lock, 0), concat(connection_id(), ':', unix_timestamp())

-- name: renew_lease
-- Heartbeat: renew the lease, report what is in flight, the breakers and a stall. No row found: the lease was lost, and with it
-- every lane.
UPDATE {relay}
   SET lease_until = {now} + INTERVAL :lease MICROSECOND,
       in_flight = (SELECT coalesce(json_arrayagg(json_array(h.event_id, h.destination,
                                      date_format({now} - INTERVAL round(h.seconds * 1000000) MICROSECOND, '%Y-%m-%d %H:%i:%s.%f'))), '[]')
                      FROM JSON_TABLE(:in_flight, '$[*]' COLUMNS (event_id VARCHAR(200) {bytewise} PATH '$[0]',
                             destination VARCHAR(255) {bytewise} PATH '$[1]', seconds DOUBLE PATH '$[2]')) AS h),
       breakers = :breakers,
       breaker_states = :breaker_states,
       stalled = :stalled,
       session = :session
 WHERE id = :relay

-- name: other_breakers
-- The breakers of each other live relay, and whether this one was asked to drain.
SELECT id, breakers, drain_requested_by IS NOT NULL FROM {relay} WHERE id = :relay OR {lease_is_valid} ORDER BY id

-- name: other_sessions
-- List every other relay with a valid lease that holds a lock. After a restart of the server every relay needs some seconds to begin
-- another session: until then, only sessions that began after the restart. The server reports its uptime in whole seconds.
SELECT r.id, r.session
  FROM {relay} AS r
  JOIN (SELECT CAST(variable_value AS SIGNED) AS uptime FROM information_schema.global_status WHERE variable_name = 'UPTIME') AS server
 WHERE r.id <> :relay AND {lease_is_valid:r.} AND r.session IS NOT NULL
   AND (server.uptime > 5 OR substring_index(r.session, ':', -1) > unix_timestamp() - server.uptime + 1)
 ORDER BY r.id

-- name: is_lock_free
-- Is this lock held by no session?
SELECT is_free_lock(:lock)

-- name: end_lease
-- End the lease of a relay whose lock is free, so that other relays need not wait. This acquires no lane.
UPDATE {relay} SET lease_until = {now} - INTERVAL 1000 MICROSECOND
 WHERE id = :relay AND session = :session AND is_free_lock(:lock) = 1

-- name: is_alive
-- Does this relay have a valid lease?
SELECT 1 FROM {relay} WHERE id = :relay AND {lease_is_valid}

-- name: lock_expired_relays
-- Lock the relays whose lease has ended; a relay that is just renewed is skipped.
SELECT id FROM {relay} WHERE lease_until < {now} AND id <> :relay ORDER BY id FOR UPDATE SKIP LOCKED

-- name: delete_relays
-- Delete relays: their next heartbeat finds nothing.
DELETE FROM {relay} WHERE id IN :relays_in

-- name: lock_free_lanes
-- Lock lanes that are free or whose owner is gone, without waiting for locks.
SELECT l.lane, l.owner, l.epoch, l.crashes
  FROM {lane} AS l
 WHERE l.owner IS NULL OR NOT EXISTS (SELECT 1 FROM {relay} AS r WHERE r.id = l.owner)
 ORDER BY l.lane LIMIT :limit FOR UPDATE SKIP LOCKED

-- name: find_relays
-- Which of these relays are registered? Asked once their lanes are locked: one of them may have joined after the statement
-- that locked the lanes began.
SELECT id FROM {relay} WHERE id IN :relays_in

-- name: acquire_lanes
-- Acquire locked lanes, each under a new epoch. MariaDB assigns from left to right: the owner comes last.
UPDATE {lane} SET crashes = crashes + (owner IS NOT NULL), epoch = epoch + 1, owner = :relay WHERE lane IN :lanes_in

-- name: lock_lanes
-- Lock lanes in their order and read their epochs. A condition on the epoch without the lock does not fence.
SELECT lane, epoch, crashes FROM {lane} WHERE lane IN :lanes_in ORDER BY lane FOR UPDATE

-- name: release_lanes
-- Release lanes that are locked.
UPDATE {lane} SET owner = NULL WHERE lane IN :lanes_in AND owner = :relay

-- name: release_all_lanes
-- Release every lane of a relay.
UPDATE {lane} SET owner = NULL WHERE owner = :relay

-- name: clear_crashes
-- Reset the crashes of lanes, because they make progress.
UPDATE {lane} SET crashes = 0 WHERE lane IN :lanes_in
