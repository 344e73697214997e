-- Fragment: the row of the innermost FROM is not in hand. Most have no destination yet: their numbers are compared, which costs half of
-- comparing texts (id, space, destination); comparing pairs took fifteen times as long.
CASE destination WHEN '' THEN id NOT IN (SELECT value FROM json_each(:unrouted))
     ELSE id || ' ' || destination NOT IN (SELECT value FROM json_each(:in_hand)) END
