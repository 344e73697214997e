"""Orders, and what happens when one is placed."""
