"""PostgreSQL: many producers, many relays, 64 lanes."""

from typing import TYPE_CHECKING

from pillarbox.lazy_names import lazy_names

if TYPE_CHECKING:
    from pillarbox.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]

if not TYPE_CHECKING:  # a type checker that saw it would believe every name
    __getattr__ = lazy_names(__name__, {"PostgresStore": "store"})
