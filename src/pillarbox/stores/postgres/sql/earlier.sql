-- Ask, for each place in a line, whether an earlier message of its key waits.
SELECT {behind} AS behind
FROM unnest($1::smallint[], $2::text[], $3::text[], $4::bigint[]) WITH ORDINALITY AS m(lane, key, destination, id, n)
ORDER BY m.n
