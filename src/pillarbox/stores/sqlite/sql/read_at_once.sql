-- A read and its messages as one row, because between any two rows, and any two statements, Python's lock may change hands: how many it
-- picked, their facts, their payloads one after another, and the arrivals. Without facts where they are larger than :most, and in
-- a database that is not in UTF-8, which would take the payloads for text and convert them.
WITH picked AS MATERIALIZED ({read})
SELECT (SELECT count(*) FROM picked), '[' || group_concat(facts) || ']', CAST(group_concat(payload, '') AS BLOB), ({arrivals})
  FROM ({fetch} AND (SELECT sum(size) FROM picked) <= :most AND length(CAST('a' AS BLOB)) = 1);
