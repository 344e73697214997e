"""Lane ownership: relays join, let their leases expire, are expired by others, return, and write under stale epochs."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from pillarbox.core.fetch import Ready
from pillarbox.core.outcome import Resolved
from pillarbox.testing.conformance.events import event
from pillarbox.testing.conformance.lane_owner import join
from pillarbox.testing.machines.machine import StoreMachine

HOUR = 3600.0
EVENTS = 20

picks = st.integers(0, 30)


@dataclass
class KnownRelay:
    """What a relay knows: it keeps the epoch of a lane after it has lost the lane."""

    id: str
    has_lease: bool = True
    removed: bool = False
    """It left, or another relay acquired its lanes after its lease expired."""
    epochs: dict[int, int] = field(default_factory=dict)


@dataclass
class KnownLane:
    """The expected state of a lane."""

    owner: KnownRelay | None = None
    epoch: int = 0
    crashes: int = 0

    @property
    def free(self) -> bool:
        return self.owner is None or self.owner.removed or not self.owner.has_lease


class LaneOwnership(StoreMachine):
    """At most one live owner per lane; epochs only grow; a stale epoch writes nothing."""

    async def prepare(self) -> None:
        self.relays: list[KnownRelay] = []
        self.lanes = [KnownLane() for _ in range(self.store.lanes.count)]
        self.deferrals = dict.fromkeys((f"e{n}" for n in range(EVENTS)), 0)
        await self.harness.commit(*(event(event_id) for event_id in self.deferrals))

    @rule()
    def join(self) -> None:
        self.relays.append(KnownRelay(self.run(join(self.store, lease=HOUR))))

    @rule(pick=picks)
    def renew(self, pick: int) -> None:
        if relay := self._pick(pick):
            renewal = self.run(self.store.lanes.renew(relay.id, lease=HOUR))
            assert (renewal is None) == relay.removed
            if renewal is not None:
                relay.has_lease = True
                assert renewal.relays == sum(other.has_lease and not other.removed for other in self.relays)

    @rule(pick=picks)
    def expire_lease(self, pick: int) -> None:
        relay = self._pick(pick)
        if relay and not relay.removed:
            assert self.run(self.store.lanes.renew(relay.id, lease=0)) is not None
            relay.has_lease = False

    @rule(pick=picks, most=st.integers(0, 40))
    def take(self, pick: int, most: int) -> None:
        relay = self._pick(pick)
        if relay is None or relay.removed or not relay.has_lease:
            return
        free = [number for number, lane in enumerate(self.lanes) if lane.free]
        taken = self.run(self.store.lanes.acquire(relay.id, limit=most))
        assert {owned.lane for owned in taken} <= set(free)
        assert len(taken) == min(most, len(free))
        for other in self.relays:
            other.removed = other.removed or not other.has_lease
        for owned in taken:
            lane = self.lanes[owned.lane]
            lane.crashes += lane.owner is not None
            assert owned.epoch > lane.epoch
            assert owned.crashes == lane.crashes
            lane.owner, lane.epoch = relay, owned.epoch
            relay.epochs[owned.lane] = owned.epoch

    @rule(pick=picks)
    def take_after_removal(self, pick: int) -> None:
        relay = self._pick(pick)
        if relay and relay.removed:
            without_lease = [other for other in self.relays if not (other.has_lease or other.removed)]
            # The store may expire other relays now or leave that to the next acquisition.
            if not without_lease:
                assert self.run(self.store.lanes.acquire(relay.id, limit=len(self.lanes))) == []

    @rule(pick=picks, every=st.integers(1, 3))
    def release(self, pick: int, every: int) -> None:
        """Release lanes, also lanes that the relay no longer owns: that must change nothing."""
        if relay := self._pick(pick):
            given = {lane: epoch for lane, epoch in relay.epochs.items() if lane % every == 0}
            self.run(self.store.lanes.release(relay.id, given))
            for number, epoch in given.items():
                lane = self.lanes[number]
                if lane.owner is relay and lane.epoch == epoch:
                    lane.owner = None

    @rule(pick=picks)
    def leave(self, pick: int) -> None:
        if relay := self._pick(pick):
            self.run(self.store.lanes.release(relay.id))
            relay.removed, relay.has_lease = True, False
            for lane in self.lanes:
                if lane.owner is relay:
                    lane.owner = None

    @rule(pick=picks)
    def write(self, pick: int) -> None:
        """Write under all epochs that the relay knows, current and stale ones together."""
        if relay := self._pick(pick):
            messages = self.run(self.store.messages.fetch(Ready(lanes=range(len(self.lanes)))))
            assert len(messages) == EVENTS
            mine = [m for m in messages if relay.epochs.get(m.lane) == self.lanes[m.lane].epoch]
            resolved = [Resolved(m, m.destination) for m in messages]
            settled = self.run(self.store.writes.count_attempt(relay.epochs, resolved, error="tried"))
            assert settled.count == len(mine)
            assert settled.lost == {m.lane for m in messages} - {m.lane for m in mine}
            for message in mine:
                self.deferrals[message.event_id] += 1

    @invariant()
    def only_current_epochs_have_written(self) -> None:
        messages = self.run(self.store.messages.fetch(Ready(lanes=range(len(self.lanes)))))
        assert {m.event_id: m.deferrals for m in messages} == self.deferrals

    def _pick(self, pick: int) -> KnownRelay | None:
        return self.relays[pick % len(self.relays)] if self.relays else None


class LaneOwnershipInVirtualTime(LaneOwnership):
    """The same, with leases that expire as time passes; for a store whose clock is the clock of the loop."""

    @rule(pick=picks)
    def expire_all_leases_but_one(self, pick: int) -> None:
        renewing = self._pick(pick)
        if renewing and renewing.has_lease and not renewing.removed:
            self.run(self.store.lanes.renew(renewing.id, lease=2 * HOUR))
            self.run(asyncio.sleep(HOUR))
            for relay in self.relays:
                relay.has_lease = relay is renewing
            self.run(self.store.lanes.renew(renewing.id, lease=HOUR))
