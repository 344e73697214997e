"""Orders, notes that handlers write, and the suites."""
