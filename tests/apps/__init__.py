"""The applications, on real servers."""
