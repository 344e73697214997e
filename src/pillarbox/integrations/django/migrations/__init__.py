"""One migration of Django per version of the tables."""
