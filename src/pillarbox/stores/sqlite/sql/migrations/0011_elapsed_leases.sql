-- A lease ends by the clock that counts from the start of the host, which nobody sets: jumps of the wall clock end none.

ALTER TABLE {relay} ADD COLUMN lease_length REAL;
ALTER TABLE {relay} ADD COLUMN lease_end REAL;
