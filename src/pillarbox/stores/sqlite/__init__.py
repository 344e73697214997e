"""SQLite: the embedded default, one file, one lane, nothing to install."""

from pillarbox.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
