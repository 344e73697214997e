-- Fragment: does an earlier message of m's key wait for m's destination, or for ''? One probe per narrow index.
CASE WHEN m.key IS NULL THEN false
     WHEN m.destination = '' THEN
       EXISTS (SELECT FROM {message} h WHERE h.lane = m.lane AND h.key = m.key AND h.id < m.id AND ({is_head}) OFFSET 0)
       OR EXISTS (SELECT FROM {message} h WHERE h.lane = m.lane AND h.key = m.key AND h.id < m.id AND h.held = 'behind' OFFSET 0)
       OR EXISTS (SELECT FROM {message} h WHERE h.lane = m.lane AND h.key = m.key AND h.id < m.id AND {is_delayed}
                  AND h.available_at <= now() OFFSET 0)
     ELSE
       EXISTS (SELECT FROM {message} h WHERE h.lane = m.lane AND h.key = m.key AND h.destination = m.destination
               AND h.id < m.id AND ({is_head}) OFFSET 0)
       OR EXISTS (SELECT FROM {message} h WHERE h.lane = m.lane AND h.key = m.key AND h.destination = ''
                  AND h.id < m.id AND ({is_head}) OFFSET 0)
       OR EXISTS (SELECT FROM {message} h WHERE h.lane = m.lane AND h.key = m.key AND h.destination = m.destination
                  AND h.id < m.id AND h.held = 'behind' OFFSET 0)
       OR EXISTS (SELECT FROM {message} h WHERE h.lane = m.lane AND h.key = m.key AND h.destination = ''
                  AND h.id < m.id AND h.held = 'behind' OFFSET 0)
       OR EXISTS (SELECT FROM {message} h WHERE h.lane = m.lane AND h.key = m.key AND h.id < m.id
                  AND {is_delayed} AND h.available_at <= now() AND h.destination IN ('', m.destination) OFFSET 0)
END
