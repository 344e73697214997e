-- The heartbeat: the lease runs on, people see what is in hand since when, and other relays what could be sent.
UPDATE {relay}
   SET lease_until = coalesce(strftime('%Y-%m-%dT%H:%M:%fZ', 'now', printf('%+.3f seconds', :lease)),
                              '9999-12-31T23:59:59.999Z'),
       lease_length = :lease,
       lease_end = elapsed() + :lease,
       in_hand = (SELECT json_group_array(json_array(
                           json_extract(value, '$[0]'), json_extract(value, '$[1]'),
                           strftime('%Y-%m-%dT%H:%M:%fZ', 'now',
                                    printf('%+.3f seconds', -json_extract(value, '$[2]')))))
                    FROM json_each(:in_hand)),
       breakers = :breakers,
       stalled = :stalled,
       session = :session
 WHERE id = :relay;
