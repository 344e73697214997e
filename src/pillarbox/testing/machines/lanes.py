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
    alive: bool = True
    buried: bool = False
    epochs: dict[int, int] = field(default_factory=dict)


@dataclass
class KnownLane:
    """The expected state of a lane."""

    owner: KnownRelay | None = None
    epoch: int = 0
    crashes: int = 0

    @property
    def free(self) -> bool:
        return self.owner is None or self.owner.buried or not self.owner.alive


class LaneOwnership(StoreMachine):
    """At most one live owner per lane; epochs only grow; a stale epoch writes nothing."""

    async def begin(self) -> None:
        self.relays: list[KnownRelay] = []
        self.lanes = [KnownLane() for _ in range(self.store.lanes.count)]
        self.tries = dict.fromkeys((f"e{n}" for n in range(EVENTS)), 0)
        await self.harness.commit(*(event(event_id) for event_id in self.tries))

    @rule()
    def join(self) -> None:
        self.relays.append(KnownRelay(self.run(join(self.store, lease=HOUR))))

    @rule(pick=picks)
    def renew(self, pick: int) -> None:
        if relay := self._pick(pick):
            renewal = self.run(self.store.lanes.renew(relay.id, lease=HOUR))
            assert (renewal is None) == relay.buried
            if renewal is not None:
                relay.alive = True
                assert renewal.relays == sum(other.alive and not other.buried for other in self.relays)

    @rule(pick=picks)
    def let_the_lease_lapse(self, pick: int) -> None:
        relay = self._pick(pick)
        if relay and not relay.buried:
            assert self.run(self.store.lanes.renew(relay.id, lease=0)) is not None
            relay.alive = False

    @rule(pick=picks, most=st.integers(0, 40))
    def take(self, pick: int, most: int) -> None:
        relay = self._pick(pick)
        if relay is None or relay.buried or not relay.alive:
            return
        free = [number for number, lane in enumerate(self.lanes) if lane.free]
        taken = self.run(self.store.lanes.take(relay.id, most=most))
        assert {lease.lane for lease in taken} <= set(free)
        assert len(taken) == min(most, len(free))
        for other in self.relays:
            other.buried = other.buried or not other.alive
        for lease in taken:
            lane = self.lanes[lease.lane]
            lane.crashes += lane.owner is not None
            assert lease.epoch > lane.epoch
            assert lease.crashes == lane.crashes
            lane.owner, lane.epoch = relay, lease.epoch
            relay.epochs[lease.lane] = lease.epoch

    @rule(pick=picks)
    def take_after_death(self, pick: int) -> None:
        dead = self._pick(pick)
        if dead and dead.buried:
            lapsed = [relay for relay in self.relays if not relay.alive and not relay.buried]
            # The store may expire other relays now or leave that to the next acquisition.
            if not lapsed:
                assert self.run(self.store.lanes.take(dead.id, most=len(self.lanes))) == []

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
            relay.buried, relay.alive = True, False
            for lane in self.lanes:
                if lane.owner is relay:
                    lane.owner = None

    @rule(pick=picks)
    def write(self, pick: int) -> None:
        """Write under all epochs that the relay knows, current and stale ones together."""
        if relay := self._pick(pick):
            messages = self.run(self.store.messages.read(Ready(lanes=range(len(self.lanes)))))
            assert len(messages) == EVENTS
            mine = [m for m in messages if relay.epochs.get(m.lane) == self.lanes[m.lane].epoch]
            resolved = [Resolved(m, m.destination) for m in messages]
            settled = self.run(self.store.writes.note(relay.epochs, resolved, error="tried"))
            assert settled.count == len(mine)
            assert settled.held == {m.lane for m in mine}
            assert settled.lost == {m.lane for m in messages} - settled.held
            for message in mine:
                self.tries[message.event_id] += 1

    @invariant()
    def only_current_epochs_have_written(self) -> None:
        messages = self.run(self.store.messages.read(Ready(lanes=range(len(self.lanes)))))
        assert {m.event_id: m.deferrals for m in messages} == self.tries

    def _pick(self, pick: int) -> KnownRelay | None:
        return self.relays[pick % len(self.relays)] if self.relays else None


class LaneOwnershipInVirtualTime(LaneOwnership):
    """The same, with leases that expire as time passes; for a store whose clock is the clock of the loop."""

    @rule(pick=picks)
    def time_passes_for_all_but_one(self, pick: int) -> None:
        keeper = self._pick(pick)
        if keeper and keeper.alive and not keeper.buried:
            self.run(self.store.lanes.renew(keeper.id, lease=2 * HOUR))
            self.run(asyncio.sleep(HOUR))
            for relay in self.relays:
                relay.alive = relay is keeper
            self.run(self.store.lanes.renew(keeper.id, lease=HOUR))
