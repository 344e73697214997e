-- Give the lane back; under another epoch it is somebody else's.
UPDATE {lane} SET owner = NULL WHERE lane = 0 AND owner = :relay AND epoch = :epoch;
