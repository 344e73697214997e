"""What operators see and ask for: the values, and the protocol `Admin` that a store's operators' half implements."""
