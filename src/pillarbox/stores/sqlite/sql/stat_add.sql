-- What a relay has to say of its destinations since it last did.
INSERT INTO {stat} (relay, destination, figures)
SELECT :relay, json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(:figures);
