"""The released migrations: later releases upgrade from them, so they must not change."""
