"""What stands between the relay and a destination: pure state, moved by the time it is told."""
