"""Who works: leases end by the monotonic clock, and a lane changes hands only under a new epoch."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from pillarbox.core.lane import Epochs, InFlightMessage, Lease, RelayCard, Renewal, Session
from pillarbox.stores.memory.tables import LaneTable, Relay, Tables, verb


class MemoryLanes:
    """See `pillarbox.core.lane.Lanes`."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self.count = len(tables.lanes)

    @verb
    def join(self, card: RelayCard, *, lease: float) -> None:
        self._tables.relays[card.id] = Relay(
            card=card, started_at=self._tables.now(), lease_end=self._tables.elapsed() + lease
        )

    @verb
    def renew(
        self,
        relay: str,
        *,
        lease: float,
        in_flight: Sequence[InFlightMessage] = (),
        breakers: Mapping[str, str] = {},
        stalled: str = "",
    ) -> Renewal | None:
        living = self._tables.relays.get(relay)
        if living is None:
            return None
        living.lease_end = self._tables.elapsed() + lease
        living.in_flight = tuple(in_flight)
        living.breakers = dict(breakers)
        living.stalled = stalled
        others = [other for other in self._tables.living() if other is not living]
        return Renewal(
            relays=len(others) + 1,
            others=tuple(dict(other.breakers) for other in others),
            drain=living.draining,
        )

    @verb
    def ended(self, relay: str) -> list[Session]:
        """None: a process that ends takes its tables with it."""
        return []

    @verb
    def expire(self, sessions: Sequence[Session]) -> int:
        living = [found for one in sessions if (found := self._tables.relays.get(one.relay)) is not None]
        for relay in living:
            relay.lease_end = self._tables.elapsed()
        return len(living)

    async def session_ended(self) -> None:
        """Never."""
        await asyncio.Event().wait()

    @verb
    def take(self, relay: str, *, most: int) -> list[Lease]:
        living = {other.card.id: other for other in self._tables.living()}
        if relay not in living:
            return []
        self._tables.relays = living
        free = [n for n, lane in enumerate(self._tables.lanes) if lane.owner not in self._tables.relays]
        return [self._hand_over(n, relay) for n in free[:most]]

    @verb
    def release(self, relay: str, epochs: Epochs | None = None) -> None:
        if epochs is None:
            self._tables.relays.pop(relay, None)
        for number, lane in enumerate(self._tables.lanes):
            if lane.owner == relay and (epochs is None or epochs.get(number) == lane.epoch):
                lane.owner = None

    def _hand_over(self, number: int, relay: str) -> Lease:
        lane: LaneTable = self._tables.lanes[number]
        lane.crashes += lane.owner is not None
        lane.owner = relay
        lane.epoch += 1
        return Lease(lane=number, epoch=lane.epoch, crashes=lane.crashes)
