-- name: ledger_before
-- Find, of what is about to be sent, what was sent before, and which of these sends began and was never settled.
SELECT p.event_id, p.destination, CASE p.status WHEN 'SUCCESS' THEN 'sent' ELSE 'unknown' END
  FROM {ledger_messages} STRAIGHT_JOIN {ledger} AS p ON p.event_id = a.event_id AND p.destination = a.destination
 WHERE p.status = 'SUCCESS' OR (p.status = 'PROCESSING' AND p.send_number = a.send_number)
 FOR UPDATE

-- name: ledger_begin
-- Enter what is about to be sent. MariaDB assigns from left to right: the status comes last.
INSERT INTO {ledger} (event_id, destination, status, send_number)
SELECT a.event_id, a.destination, 'PROCESSING', a.send_number FROM {ledger_messages} ORDER BY a.event_id, a.destination
ON DUPLICATE KEY UPDATE
  updated_at = CASE WHEN {ledger}.status = 'SUCCESS'
                      OR ({ledger}.status = 'PROCESSING' AND {ledger}.send_number <=> VALUES(send_number))
                    THEN {ledger}.updated_at ELSE {now} END,
  send_number = CASE WHEN {ledger}.status = 'SUCCESS' THEN {ledger}.send_number ELSE VALUES(send_number) END,
  status = CASE WHEN {ledger}.status = 'SUCCESS' THEN {ledger}.status ELSE 'PROCESSING' END

-- fragment: ledger_messages
-- What is about to be sent, as rows a.
JSON_TABLE(:messages, '$[*]' COLUMNS (event_id VARCHAR(200) {bytewise} PATH '$[0]',
  destination VARCHAR(255) {bytewise} PATH '$[1]', send_number BIGINT PATH '$[2]')) AS a

-- name: ledger_history
-- Find which of these events were delivered, and where: by the index of each day, whatever the size of the history.
SELECT DISTINCT h.event_id, h.destination FROM {history} AS h WHERE h.event_id IN :ids_in

-- name: ledger_delivered
-- Enter what was delivered in the ledger.
-- with: settled=settlement_rows
-- variant at_once: settled=delivered_at_once
INSERT INTO {ledger} (event_id, destination, status, processed_at)
SELECT DISTINCT m.event_id, a.resolved, 'SUCCESS', {now}
  FROM {settled} STRAIGHT_JOIN {message} AS m ON m.id = a.id AND m.destination = a.destination
 WHERE a.outcome = 'delivered'
 ORDER BY m.event_id, a.resolved
ON DUPLICATE KEY UPDATE status = 'SUCCESS', updated_at = {now}, processed_at = {now}

-- name: ledger_failed
-- Enter what was dead-lettered in the ledger, unless an event with the same id was delivered.
INSERT INTO {ledger} (event_id, destination, status, processed_at)
SELECT DISTINCT m.event_id, a.resolved, 'FAILED', {now}
  FROM settlement AS a STRAIGHT_JOIN {message} AS m ON m.id = a.id AND m.destination = a.destination
 WHERE a.outcome = 'dead'
 ORDER BY m.event_id, a.resolved
ON DUPLICATE KEY UPDATE
  updated_at = CASE WHEN {ledger}.status = 'SUCCESS' THEN {ledger}.updated_at ELSE {now} END,
  processed_at = CASE WHEN {ledger}.status = 'SUCCESS' THEN {ledger}.processed_at ELSE {now} END,
  status = CASE WHEN {ledger}.status = 'SUCCESS' THEN {ledger}.status ELSE 'FAILED' END
