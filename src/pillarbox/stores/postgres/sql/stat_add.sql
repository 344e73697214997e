-- What a relay has to say of its destinations since it last did.
INSERT INTO {stat} (relay, destination, figures)
SELECT $1, i.destination, i.figures::jsonb FROM unnest($2::text[], $3::text[]) AS i(destination, figures)
