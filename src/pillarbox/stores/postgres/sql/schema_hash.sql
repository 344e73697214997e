-- Does the database hash lanes as it did when the tables were made?
SELECT coalesce(bool_and(lane_hash = hashtext('pillarbox')), true) FROM {schema}
