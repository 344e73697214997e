"""The state of destinations: relays report, operators override, in one row per destination."""

from __future__ import annotations

from pillarbox.core.outcome import sanitize_error
from pillarbox.core.store import Override
from pillarbox.stores.memory.tables import StoredDestination, Tables, atomic


class MemoryDestinations:
    """See `pillarbox.core.store.Destinations`."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    @atomic
    def report(self, destination: str, *, error: str | None, next_attempt: float | None) -> None:
        row = row_of(self._tables, destination)
        row.override = row.override._replace(last_error=None if error is None else sanitize_error(error))
        row.next_attempt_at = None if next_attempt is None else self._tables.after(next_attempt)

    @atomic
    def overrides(self) -> list[Override]:
        rows = [row.override for row in self._tables.destinations.values()]
        return sorted(row for row in rows if row != _without_override(row.destination))


def row_of(tables: Tables, destination: str) -> StoredDestination:
    """The row of a destination, which is added if it is missing."""
    return tables.destinations.setdefault(destination, StoredDestination(override=_without_override(destination)))


def is_overridden(row: Override) -> bool:
    """Whether an operator's override is in force."""
    return row.paused or row.breaker is not None or row.rate_limit is not None


def _without_override(destination: str) -> Override:
    return Override(destination, paused=False, breaker=None, rate_limit=None, last_error=None)
