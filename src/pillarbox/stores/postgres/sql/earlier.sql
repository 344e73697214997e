-- Ask, for each place in a line, whether an earlier message of its key waits.
SELECT {behind} AS behind
FROM unnest($1::text::smallint[], $2::text::text[], $3::text::text[], $4::text::bigint[])
  WITH ORDINALITY AS m(lane, key, destination, id, n)
ORDER BY m.n
