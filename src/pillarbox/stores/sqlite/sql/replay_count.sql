-- The history by the time of recording, as far as one look goes, and whether a replay wants each; the reader stops early.
SELECT m.recorded_at, m.id, m.destination, {wanted}
  FROM {history} AS m
 WHERE (m.recorded_at, m.id, m.destination) > (:recorded_at, :id, :place) AND m.recorded_at < :until {narrowed}
 ORDER BY m.recorded_at, m.id, m.destination
 LIMIT :look;
