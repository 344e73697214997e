"""Our stores, as `pillarbox.plugins` opens them. A driver is imported only when its store is opened."""

from __future__ import annotations

from pillarbox.core.store import Store
from pillarbox.plugins import StoreOptions


def open_postgres(url: str, options: StoreOptions) -> Store:
    """`postgresql://…`."""
    from pillarbox.stores.postgres import PostgresStore

    return PostgresStore(
        url,
        schema=options.schema,
        prefix=options.prefix,
        history=options.history,
        ledger=options.ledger,
        max_payload=options.max_payload,
        statement_timeout=options.statement_timeout,
    )


def open_sqlite(url: str, options: StoreOptions) -> Store:
    """`sqlite:///file.db`."""
    from pillarbox.stores.sqlite import SqliteStore

    return SqliteStore(
        url, prefix=options.prefix, history=options.history, ledger=options.ledger, max_payload=options.max_payload
    )


def open_memory(url: str, options: StoreOptions) -> Store:
    """`memory://`."""
    from pillarbox.stores.memory import MemoryStore

    return MemoryStore(history=options.history, ledger=options.ledger)
