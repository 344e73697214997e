"""How the places behind the transports fare: relays report, people steer, in one row per destination."""

from __future__ import annotations

from typing import Any

from pillarbox.core.outcome import legible
from pillarbox.core.steering import KEEP, Forced, Keep, Steering, changes
from pillarbox.stores.memory.tables import Destination, Tables, verb


class MemoryDestinations:
    """See `pillarbox.core.store.Destinations`."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    @verb
    def report(self, destination: str, *, error: str | None, next_try: float | None) -> None:
        row = self._row(destination)
        row.steering = row.steering._replace(last_error=None if error is None else legible(error))
        row.next_try_at = None if next_try is None else self._tables.after(next_try)

    @verb
    def steering(self) -> list[Steering]:
        rows = [row.steering for row in self._tables.destinations.values()]
        return sorted(row for row in rows if row != _untouched(row.destination))

    @verb
    def steer(
        self,
        destination: str,
        *,
        paused: bool | Keep = KEEP,
        breaker: Forced | Keep | None = KEEP,
        rate_limit: float | Keep | None = KEEP,
        by: str = "",
    ) -> None:
        changed: dict[str, Any] = changes(paused=paused, breaker=breaker, rate_limit=rate_limit)
        row = self._row(destination)
        row.steering = row.steering._replace(**changed)
        self._tables.remember(by, "steer", destination, **changed)

    def _row(self, destination: str) -> Destination:
        return self._tables.destinations.setdefault(destination, Destination(steering=_untouched(destination)))


def _untouched(destination: str) -> Steering:
    return Steering(destination, paused=False, breaker=None, rate_limit=None, last_error=None)
