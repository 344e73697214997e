"""The state of destinations: relays report, operators override, in one row per destination."""

from __future__ import annotations

from pillarbox.core.outcome import legible
from pillarbox.core.store import Override
from pillarbox.stores.memory.tables import Destination, Tables, verb


class MemoryDestinations:
    """See `pillarbox.core.store.Destinations`."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    @verb
    def report(self, destination: str, *, error: str | None, next_attempt: float | None) -> None:
        row = row_of(self._tables, destination)
        row.override = row.override._replace(last_error=None if error is None else legible(error))
        row.next_attempt_at = None if next_attempt is None else self._tables.after(next_attempt)

    @verb
    def overrides(self) -> list[Override]:
        rows = [row.override for row in self._tables.destinations.values()]
        return sorted(row for row in rows if row != _without_override(row.destination))


def row_of(tables: Tables, destination: str) -> Destination:
    """The row of a destination, which is added if it is missing."""
    return tables.destinations.setdefault(destination, Destination(override=_without_override(destination)))


def _without_override(destination: str) -> Override:
    return Override(destination, paused=False, breaker=None, rate_limit=None, last_error=None)
