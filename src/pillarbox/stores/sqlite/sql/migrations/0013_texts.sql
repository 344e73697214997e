-- Texts that a message is found by are UTF-8 without NUL. SQLite takes any bytes for text, but a relay could not name such a row
-- again: it would come with every look and never go, and whatever waits behind it would wait for ever.

-- Those that are there become what they are read as.
UPDATE OR IGNORE {message}
   SET destination = substr(destination, 1, instr(destination, char(0)) - 1) || char(65533)
 WHERE instr(destination, char(0)) > 0;
UPDATE OR IGNORE {message} AS m
   SET destination = (
     WITH RECURSIVE piece(place, text) AS (
       SELECT 1, char(unicode(m.destination))
       UNION ALL
       SELECT place + 1, text || char(unicode(substr(m.destination, place + 1, 1))) FROM piece
        WHERE place < length(m.destination))
     SELECT text FROM piece ORDER BY place DESC LIMIT 1)
 WHERE m.destination GLOB '*[^ -~]*';
UPDATE OR IGNORE {message} AS m
   SET aggregate_type = (
     WITH RECURSIVE piece(place, text) AS (
       SELECT 1, char(unicode(m.aggregate_type))
       UNION ALL
       SELECT place + 1, text || char(unicode(substr(m.aggregate_type, place + 1, 1))) FROM piece
        WHERE place < length(m.aggregate_type))
     SELECT text FROM piece ORDER BY place DESC LIMIT 1)
 WHERE m.aggregate_type GLOB '*[^ -~]*';
UPDATE OR IGNORE {message} AS m
   SET aggregate_id = (
     WITH RECURSIVE piece(place, text) AS (
       SELECT 1, char(unicode(m.aggregate_id))
       UNION ALL
       SELECT place + 1, text || char(unicode(substr(m.aggregate_id, place + 1, 1))) FROM piece
        WHERE place < length(m.aggregate_id))
     SELECT text FROM piece ORDER BY place DESC LIMIT 1)
 WHERE m.aggregate_id GLOB '*[^ -~]*';
UPDATE OR IGNORE {message} AS m
   SET ordering_key = (
     WITH RECURSIVE piece(place, text) AS (
       SELECT 1, char(unicode(m.ordering_key))
       UNION ALL
       SELECT place + 1, text || char(unicode(substr(m.ordering_key, place + 1, 1))) FROM piece
        WHERE place < length(m.ordering_key))
     SELECT text FROM piece ORDER BY place DESC LIMIT 1)
 WHERE m.ordering_key GLOB '*[^ -~]*';

-- A character that is not what unicode() reads is none; but for two noncharacters, which it reads as another one. Texts in
-- printable ASCII are not taken apart.
CREATE TRIGGER "{prefix}message_texts_inserted" AFTER INSERT ON {message}
WHEN instr(NEW.destination, char(0)) > 0
  OR NEW.event_id || NEW.destination || NEW.event_type || coalesce(NEW.key, '') GLOB '*[^ -~]*'
BEGIN
  SELECT RAISE(ABORT, 'constraint failed: event_id, destination, event_type and key are UTF-8 without NUL')
   WHERE instr(NEW.destination, char(0)) > 0 OR EXISTS (
     WITH RECURSIVE piece(text, place) AS (
       SELECT t.text, 1
         FROM (SELECT NEW.event_id AS text UNION ALL SELECT NEW.destination UNION ALL SELECT NEW.event_type
               UNION ALL SELECT NEW.key) AS t
        WHERE t.text <> ''
       UNION ALL
       SELECT text, place + 1 FROM piece WHERE place < length(text))
     SELECT 1 FROM piece
      WHERE char(unicode(substr(text, place, 1))) <> substr(text, place, 1)
        AND substr(text, place, 1) NOT IN (CAST(x'EFBFBE' AS TEXT), CAST(x'EFBFBF' AS TEXT)));
END;
CREATE TRIGGER "{prefix}message_texts_updated"
AFTER UPDATE OF event_id, destination, event_type, aggregate_type, aggregate_id, ordering_key ON {message}
WHEN instr(NEW.destination, char(0)) > 0
  OR NEW.event_id || NEW.destination || NEW.event_type || coalesce(NEW.key, '') GLOB '*[^ -~]*'
BEGIN
  SELECT RAISE(ABORT, 'constraint failed: event_id, destination, event_type and key are UTF-8 without NUL')
   WHERE instr(NEW.destination, char(0)) > 0 OR EXISTS (
     WITH RECURSIVE piece(text, place) AS (
       SELECT t.text, 1
         FROM (SELECT NEW.event_id AS text UNION ALL SELECT NEW.destination UNION ALL SELECT NEW.event_type
               UNION ALL SELECT NEW.key) AS t
        WHERE t.text <> ''
       UNION ALL
       SELECT text, place + 1 FROM piece WHERE place < length(text))
     SELECT 1 FROM piece
      WHERE char(unicode(substr(text, place, 1))) <> substr(text, place, 1)
        AND substr(text, place, 1) NOT IN (CAST(x'EFBFBE' AS TEXT), CAST(x'EFBFBF' AS TEXT)));
END;
