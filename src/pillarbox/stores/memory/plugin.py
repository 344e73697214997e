"""The memory store as an adapter: `memory://`."""

from __future__ import annotations

from pillarbox.admin.admin import AdminStore
from pillarbox.plugins import StoreOptions, StorePlugin
from pillarbox.stores.memory.store import MemoryStore


class MemoryPlugin(StorePlugin):
    """`memory://`."""

    shared = False
    ignored = ("schema", "prefix", "statement_timeout")

    def open(self, url: str, options: StoreOptions) -> AdminStore:
        return MemoryStore(history=options.history, ledger=options.ledger, max_payload=options.max_payload)
