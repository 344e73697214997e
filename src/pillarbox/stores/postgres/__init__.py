"""PostgreSQL: many producers, many relays, 64 lanes."""

from pillarbox.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
