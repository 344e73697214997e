-- Fragment: from position ($1, $2, $3) back. A strict comparison of all three would let the planner take rows of that very time
-- for none, although one transaction may have recorded a million: it would read and sort them all.
(m.recorded_at, m.id) <= ($1, $2) AND ((m.recorded_at, m.id) <> ($1, $2) OR m.destination < $3)
