-- Fragment: m is the row that a asks for, in the same place: another row with the same event id and destination is left alone.
-- No join can be hashed or merged on such conditions, so that every plan goes by the primary key, one probe for each a. With
-- m.event_id = a.event_id a plan that was made while the table was small reads the whole table when it has grown.
m.event_id = ANY (ARRAY[a.event_id]) AND m.destination = a.destination AND (m.id = a.id) IS TRUE
