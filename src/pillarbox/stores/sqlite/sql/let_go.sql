-- Give everything back that a relay owns.
UPDATE {lane} SET owner = NULL WHERE owner = :relay;
