"""Deletes data past its retention period in small batches, the oldest first; never pending messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import islice
from typing import Any

from pillarbox.core.store import Retention
from pillarbox.stores.memory.tables import Tables, atomic


class MemoryPruning:
    """See `pillarbox.core.store.Pruning`."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    @atomic
    def prune(self, kept: Retention, *, limit: int = 1000) -> int:
        deleted = 0
        for table, old in stale(self._tables, kept):
            for key in list(islice(old, limit)):
                del table[key]
                deleted += 1
        if kept.samples is not None:
            oldest = self._tables.after(-kept.samples)
            self._tables.samples = [sample for sample in self._tables.samples if sample.at > oldest]
        if kept.inbox is not None:
            oldest = self._tables.after(-kept.inbox)
            self._tables.consumer_statistics = [
                (at, statistics) for at, statistics in self._tables.consumer_statistics if at > oldest
            ]
        if kept.attempts is not None:
            oldest = self._tables.after(-kept.attempts)
            self._tables.attempts = [one for one in self._tables.attempts if one.failure.attempted_at > oldest]
        return deleted


def stale(tables: Tables, kept: Retention) -> Iterator[tuple[dict[Any, Any], Iterator[Any]]]:
    """History, dead letters, inbox and ledger, each with the keys of its rows past their retention period."""
    kinds: tuple[dict[Any, Any], ...] = (tables.history, tables.dead, tables.inbox, tables.processed)
    ends: tuple[Callable[[Any], datetime | None], ...] = (
        lambda row: row.published_at,
        lambda row: row.dead_lettered_at,
        lambda received_at: received_at,
        lambda entry: None if entry.status == "PROCESSING" else entry.created_at,
    )
    ages = (kept.history, kept.dead, kept.inbox, kept.ledger)
    for table, end, age in zip(kinds, ends, ages, strict=True):
        limit = None if age is None else tables.after(-age)
        yield (
            table,
            (
                key
                for key, row in table.items()
                if limit is not None and (ended := end(row)) is not None and ended <= limit
            ),
        )
