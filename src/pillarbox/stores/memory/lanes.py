"""Leases and lanes: leases end by the monotonic clock, and a lane changes its owner only under a new epoch."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from pillarbox.core.lane import Epochs, InFlightMessage, OwnedLane, RelayRegistration, RelaySession, Renewal
from pillarbox.stores.memory.tables import LaneTable, StoredRelay, Tables, atomic


class MemoryLanes:
    """See `pillarbox.core.lane.Lanes`."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self.count = len(tables.lanes)

    @atomic
    def join(self, registration: RelayRegistration, *, lease: float) -> None:
        self._tables.relays[registration.id] = StoredRelay(
            registration=registration, started_at=self._tables.now(), lease_end=self._tables.elapsed() + lease
        )

    @atomic
    def renew(
        self,
        relay: str,
        *,
        lease: float,
        in_flight: Sequence[InFlightMessage] = (),
        breakers: Mapping[str, str] = {},
        stalled: str = "",
    ) -> Renewal | None:
        registered = self._tables.relays.get(relay)
        if registered is None:
            return None
        registered.lease_end = self._tables.elapsed() + lease
        registered.in_flight = tuple(in_flight)
        registered.breakers = dict(breakers)
        registered.stalled = stalled
        others = [other for other in self._tables.alive_relays() if other is not registered]
        return Renewal(
            relays=len(others) + 1,
            others=tuple(dict(other.breakers) for other in others),
            drain=registered.draining,
        )

    @atomic
    def ended(self, relay: str) -> list[RelaySession]:
        """None: a process that ends takes its tables with it."""
        return []

    @atomic
    def expire(self, sessions: Sequence[RelaySession]) -> int:
        registered = [found for one in sessions if (found := self._tables.relays.get(one.relay)) is not None]
        for relay in registered:
            relay.lease_end = self._tables.elapsed()
        return len(registered)

    async def session_ended(self) -> None:
        """Never."""
        await asyncio.Event().wait()

    @atomic
    def acquire(self, relay: str, *, limit: int) -> list[OwnedLane]:
        alive = {other.registration.id: other for other in self._tables.alive_relays()}
        if relay not in alive:
            return []
        self._tables.relays = alive
        free = [n for n, lane in enumerate(self._tables.lanes) if lane.owner not in self._tables.relays]
        return [self._hand_over(n, relay) for n in free[:limit]]

    @atomic
    def release(self, relay: str, epochs: Epochs | None = None) -> None:
        if epochs is None:
            self._tables.relays.pop(relay, None)
        for number, lane in enumerate(self._tables.lanes):
            if lane.owner == relay and (epochs is None or epochs.get(number) == lane.epoch):
                lane.owner = None

    @atomic
    def clear_crashes(self, epochs: Epochs) -> None:
        for number, lane in enumerate(self._tables.lanes):
            if epochs.get(number) == lane.epoch:
                lane.crashes = 0

    def _hand_over(self, number: int, relay: str) -> OwnedLane:
        lane: LaneTable = self._tables.lanes[number]
        lane.crashes += lane.owner is not None
        lane.owner = relay
        lane.epoch += 1
        return OwnedLane(lane=number, epoch=lane.epoch, crashes=lane.crashes)
