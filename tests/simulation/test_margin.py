"""A send begins only if enough of the lease is left for it to end: not for a late event, nor after a slow ledger, nor
after the session has ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from pillarbox import Event, Relay
from pillarbox.core.errors import StoreUnavailableError
from pillarbox.core.lane import Renewal
from pillarbox.core.outcome import Resolved
from pillarbox.core.store import PriorSend
from pillarbox.core.transport import Outgoing, SendResult
from pillarbox.stores.memory import MemoryStore
from pillarbox.stores.memory.ledger import MemoryLedger
from pillarbox.testing.simulation import Simulation, simulate
from tests.simulation.stage import Stage, ids

LONGEST_SEND = 5.0 + 1.0
"""The send timeout of the stage, and a second."""
TOO_LATE = 5.0
"""Seconds after a renewal: the lease of ten has not ended, but a send might outlive it."""


class Watched(Stage):
    """Renewals fail on demand, and every send records how much of the lease is left."""

    watched: Relay
    renewing = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.left: list[float] = []
        self.transport.script(self._weigh)

    def use(self, store: MemoryStore) -> None:
        renew = store.lanes.renew

        async def renew_if_possible(relay: str, **options: object) -> Renewal | None:
            if not self.renewing:
                raise StoreUnavailableError("gone")
            return await renew(relay, **options)  # type: ignore[arg-type]

        store.lanes.renew = renew_if_possible  # type: ignore[method-assign, assignment]
        self.store = store

    def _weigh(self, _: Outgoing) -> SendResult:
        self.left.append(self.watched._context.ownership.deadline - self.now)
        return None


def test_an_event_fetched_too_late_for_the_lease_waits_for_its_renewal() -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = Watched(simulation)
        stage.use(stage.store)
        async with stage.running() as stage.watched:
            stage.record(Event("a", {}, event_id="before", key="k"))
            await stage.until(lambda: ids(stage.transport.deliveries) == ["before"])
            stage.renewing = False
            await stage.rest(TOO_LATE)
            stage.record(Event("a", {}, event_id="late", key="k"))
            await stage.rest(2)
            assert stage.watched._context.ownership.alive()
            assert ids(stage.transport.deliveries) == ["before"]
            stage.renewing = True
            await stage.until(lambda: ids(stage.transport.deliveries) == ["before", "late"])
        assert min(stage.left) >= LONGEST_SEND

    for seed in range(5):
        simulate(scenario, seed=seed)


def test_a_relay_whose_session_ended_begins_no_send_until_its_lease_was_renewed() -> None:
    async def scenario(simulation: Simulation) -> None:
        stage, ended = Watched(simulation), asyncio.Event()

        async def session_ended() -> None:
            await ended.wait()

        stage.use(stage.store)
        stage.store.lanes.session_ended = session_ended  # type: ignore[method-assign]
        async with stage.running() as stage.watched:
            stage.record(Event("a", {}, event_id="before", key="k"))
            await stage.until(lambda: ids(stage.transport.deliveries) == ["before"])
            # Other relays may expire it from now on, whatever is left of its lease.
            stage.renewing = False
            ended.set()
            await stage.until(lambda: not stage.watched._context.ownership.may_send(), within=0.5)
            stage.record(Event("a", {}, event_id="during", key="k"))
            await stage.rest(2)
            assert ids(stage.transport.deliveries) == ["before"]
            ended.clear()
            stage.renewing = True
            await stage.until(lambda: ids(stage.transport.deliveries) == ["before", "during"], within=5)
        assert min(stage.left) >= LONGEST_SEND

    for seed in range(5):
        simulate(scenario, seed=seed)


class Slow(MemoryLedger):
    """Gives its first answer too late."""

    stage: Watched
    asked = 0

    async def begin(self, messages: Sequence[Resolved]) -> list[PriorSend]:  # type: ignore[override] # to mypy an `async def` has another type
        known = await super().begin(messages)
        self.asked += 1
        if self.asked == 1:
            self.stage.renewing = False
            await self.stage.rest(TOO_LATE)
            assert self.stage.watched._context.ownership.alive()
        return known


@pytest.mark.parametrize("at_most_once", [False, True])
def test_after_a_slow_ledger_the_lease_is_checked_again(at_most_once: bool) -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = Watched(simulation)
        stage.use(MemoryStore(lanes=8, clock=simulation.clock, ledger=True))
        slow = stage.store.ledger = Slow(stage.store._tables)
        slow.stage = stage
        stage.record(*(Event("a", {}, event_id=f"{n}", key="k") for n in range(3)))
        async with stage.running(tuned={"at_most_once": at_most_once}) as stage.watched:
            await stage.until(lambda: slow.asked == 1 and not stage.renewing)
            await stage.rest(TOO_LATE + 1)
            assert stage.left == []
            stage.renewing = True
            await stage.until(lambda: len(stage.transport.deliveries) == 3)
        # It was noted and not sent: it is sent now, in its position, also with at_most_once.
        assert ids(stage.transport.deliveries) == ["0", "1", "2"]
        assert min(stage.left) >= LONGEST_SEND

    for seed in range(5):
        simulate(scenario, seed=seed)
