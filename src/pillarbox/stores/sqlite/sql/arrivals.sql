-- Numbers that grow with every message and every request that is committed, and with nothing else.
SELECT json_array(max(seq) FILTER (WHERE name = '{prefix}message'), max(seq) FILTER (WHERE name = '{prefix}request'))
  FROM sqlite_sequence;
