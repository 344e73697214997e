"""The number of fetches and settlements of a relay: few per batch, and fewer than events on one hot key."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from pillarbox import Event, Route
from pillarbox.core.errors import PermanentError
from pillarbox.core.fetch import Due, Fetched, FetchQuery, Ready
from pillarbox.core.lane import Epochs, Settled
from pillarbox.core.outcome import Decision
from pillarbox.relay.fetch import DUE_EVERY
from pillarbox.relay.fetch_loop import MAX_FETCH_PAUSE
from pillarbox.stores.memory.messages import MemoryMessages
from pillarbox.stores.memory.writes import MemoryWrites
from pillarbox.testing.simulation import Simulation, simulate
from pillarbox.transports.memory import MemoryAddress, MemoryTransport
from tests.simulation.stage import CONFIG, Stage

STATEMENT = 0.001
"""Seconds of every statement."""
CONFIRM = 0.001
SETTLEMENTS = 50
"""Per second, while fewer than an eighth of the window wait for each."""
LARGE = replace(CONFIG, batch_size=500, max_in_flight_batches=3)


class Counted:
    """Counts the statements of one relay."""

    def __init__(self, stage: Stage) -> None:
        self.fetches: Counter[type[FetchQuery]] = Counter()
        self.settlements = 0
        messages, writes = _Messages(stage.store._tables), _Writes(stage.store._tables, history=True, ledger=False)
        messages.counted = writes.counted = self
        stage.store.messages, stage.store.writes = messages, writes


class _Messages(MemoryMessages):
    counted: Counted

    async def fetch(self, look: FetchQuery) -> Fetched:  # type: ignore[override] # to mypy an `async def` has another type
        self.counted.fetches[type(look)] += 1
        await asyncio.sleep(STATEMENT)
        return await super().fetch(look)


class _Writes(MemoryWrites):
    counted: Counted

    async def settle(self, epochs: Epochs, decisions: Sequence[Decision]) -> Settled:  # type: ignore[override] # to mypy an `async def` has another type
        self.counted.settlements += 1
        await asyncio.sleep(STATEMENT)
        return await super().settle(epochs, decisions)


def staged(simulation: Simulation, *, confirm: float = CONFIRM) -> tuple[Stage, Counted]:
    stage = Stage(simulation, LARGE)
    stage.transport = MemoryTransport(clock=simulation.clock, latency=confirm)
    return stage, Counted(stage)


@pytest.mark.parametrize("events", [800, 4_000], ids=["less than the window", "more than the window"])
def test_a_hot_key_needs_few_statements_per_event(events: int) -> None:
    async def scenario(simulation: Simulation) -> None:
        stage, counted = staged(simulation)
        stage.record(*(Event("a", {}, key="hot") for _ in range(events)))
        began = stage.now
        async with stage.running():
            await stage.until(lambda: len(stage.transport.deliveries) == events)
            # At least 0.8 of one confirm after another.
            assert stage.now - began < events * CONFIRM / 0.8 + 0.5
        took = stage.now - began
        assert counted.settlements <= took * SETTLEMENTS + 5
        assert counted.fetches[Ready] <= events / 4
        assert counted.fetches[Due] <= took / DUE_EVERY + 5

    simulate(scenario, seed=1)


def test_a_hot_key_that_fills_the_window_is_fetched_ten_times_a_second() -> None:
    async def scenario(simulation: Simulation) -> None:
        stage, counted = staged(simulation)
        stage.record(*(Event("a", {}, key="hot") for _ in range(4_000)))
        async with stage.running():
            await stage.until(lambda: len(stage.transport.deliveries) > 100)
            before, began = counted.fetches[Ready], stage.now
            await stage.until(lambda: len(stage.transport.deliveries) > 2_000)
            assert counted.fetches[Ready] - before <= (stage.now - began) / MAX_FETCH_PAUSE + 1

    simulate(scenario, seed=1)


def test_a_backlog_of_many_keys_needs_three_statements_per_batch() -> None:
    async def scenario(simulation: Simulation) -> None:
        stage, counted = staged(simulation, confirm=0.02)
        batches = 40
        stage.record(*(Event("a", {}, key=f"{number}") for number in range(batches * LARGE.batch_size)))
        began = stage.now
        async with stage.running():
            await stage.until(lambda: not stage.store._tables.waiting, within=1)
        assert counted.fetches[Due] <= (stage.now - began) / DUE_EVERY + 5
        assert counted.fetches[Ready] + counted.settlements <= 3 * batches
        # As soon as there is room for many: the window is empty and full again every 20 ms.
        assert stage.now - began <= 0.4

    simulate(scenario, seed=1)


def test_a_trickle_needs_one_fetch_per_event() -> None:
    async def scenario(simulation: Simulation) -> None:
        stage, counted = staged(simulation)
        async with stage.running():
            await stage.rest(1)
            before, events = counted.fetches[Ready], 100
            for number in range(events):
                stage.record(Event("a", {}, key=f"{number}"))
                await stage.rest(0.02)
            assert len(stage.transport.deliveries) == events
            assert counted.fetches[Ready] - before <= 1.1 * events

    simulate(scenario, seed=1)


def test_a_trickle_is_settled_at_most_fifty_times_a_second() -> None:
    async def scenario(simulation: Simulation) -> None:
        stage, counted = staged(simulation)
        async with stage.running():
            for number in range(400):
                stage.record(Event("a", {}, key=f"{number}"))
                await stage.rest(0.002)
            await stage.until(lambda: not stage.store._tables.waiting)
        assert counted.settlements <= 400 * 0.002 * SETTLEMENTS + 5
        assert counted.fetches[Due] <= 400 * 0.002 / DUE_EVERY + 5

    simulate(scenario, seed=1)


def test_a_failure_is_written_at_once() -> None:
    """The rest of its key waits for it, and operators look for a dead letter."""

    async def scenario(simulation: Simulation) -> None:
        stage, _ = staged(simulation)
        stage.transport.fail_when(lambda one: one.message.event_id.startswith("bad"), PermanentError("no"))
        async with stage.running():
            await stage.rest(1)
            for number in range(1, 100):
                bad = number % 7 == 0
                stage.record(Event("a", {}, key=f"{number}", event_id=f"{'bad' if bad else 'good'}-{number}"))
                await stage.rest(0.002)
                if bad:
                    # A fetch, a rejection, and a settlement that may be in progress before its own.
                    dead = number // 7
                    await stage.until(lambda dead=dead: len(stage.store._tables.dead) == dead, within=4 * STATEMENT)  # type: ignore[misc]

    simulate(scenario, seed=1)


@pytest.mark.parametrize(
    ("what", "size", "most"),
    # Milliseconds per event: a fetch, a send, a settlement; in quarantine the attempt before it.
    [("in quarantine", 10, 8), ("larger than a fetch", 150_000, 6), ("bound by bytes", 40_000, 2)],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_settlement_that_others_wait_for_does_not_wait(what: str, size: int, most: float) -> None:
    async def scenario(simulation: Simulation) -> None:
        stage, _ = staged(simulation)
        events = 100
        if what == "in quarantine":
            for lane in stage.store._tables.lanes:
                lane.crashes = 2
        stage.record(*(Event("a", bytes(size), key=f"{n}", content_type="x/y") for n in range(events)))
        began = stage.now
        async with stage.running(tuned={} if what == "in quarantine" else {"max_in_flight_bytes": "400 KiB"}):
            await stage.until(lambda: not stage.store._tables.waiting, within=2)
        assert (stage.now - began) / events * 1000 < most

    simulate(scenario, seed=1)


def test_the_pause_between_fetches_is_no_longer_than_the_poll_interval() -> None:
    async def scenario(simulation: Simulation) -> None:
        stage, _ = staged(simulation)
        stage.transport.latch.close()
        other = MemoryTransport(clock=simulation.clock)
        ways: dict[str, Any] = {
            "tuned": {"poll_interval": "10ms"},
            "transports": {"memory": stage.transport, "other": other},
            "destinations": {
                "slow": MemoryAddress(name="slow", transport="memory"),
                "fast": MemoryAddress(name="fast", transport="other"),
            },
            "routes": [Route(event_type="fast", to=["fast"]), Route(to=["slow"])],
        }
        async with stage.running(**ways) as relay:
            stage.record(*(Event("slow", {}, key=f"{number}") for number in range(1400)))
            await stage.until(lambda: len(relay._context.in_flight) == 1400)
            for number in range(20):
                stage.record(Event("fast", {}))
                await stage.until(lambda number=number: len(other.deliveries) > number, within=0.02)  # type: ignore[misc]
            stage.transport.latch.open()

    simulate(scenario, seed=1)
