-- Which of these events were delivered, and where: by the index of each day, however long the history is.
SELECT DISTINCT h.event_id, h.destination FROM {history} h WHERE h.event_id = ANY ($1::text[])
