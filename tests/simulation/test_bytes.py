"""Messages in flight are bounded by bytes; messages of all sizes arrive, in order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from pillarbox import Event
from pillarbox.core.errors import RejectedError, UnavailableError
from pillarbox.core.fetch import Fetched, FetchQuery
from pillarbox.core.transport import Outgoing, SendResult
from pillarbox.relay.config import BreakerConfig
from pillarbox.relay.relay import Relay
from pillarbox.relay.routing import Route
from pillarbox.testing.simulation import Simulation, simulate
from pillarbox.transports.memory import MemoryTransport
from tests.simulation.stage import CONFIG, Stage, ids

BOUND = 8192
KEYS = 5


class Scale:
    """Measures the bytes in flight at every send."""

    def __init__(self) -> None:
        self.relay: Relay | None = None
        self.heaviest = 0
        self.beside: dict[str, int] = {}
        """Number of other events in flight while an event was sent."""

    def __call__(self, one: Outgoing) -> SendResult:
        assert self.relay is not None
        self.heaviest = max(self.heaviest, self.relay._context.in_flight.bytes)
        self.beside[one.message.event_id] = len(self.relay._context.in_flight) - 1
        return None


def numbered(sizes: list[int]) -> list[Event]:
    return [
        Event("t", bytes(size), event_id=f"{n:04}", key=f"key {n % KEYS}", headers={"h": "x" * (size // 2)})
        for n, size in enumerate(sizes)
    ]


async def carried(stage: Stage, sizes: list[int], *, refuse: Callable[[Outgoing], SendResult] | None = None) -> Scale:
    """Deliver events of these sizes, and measure the bytes in flight."""
    scale = Scale()
    stage.transport.script(scale)
    if refuse is not None:
        stage.transport.script(refuse)
    stage.record(*numbered(sizes))
    async with stage.running(tuned={"max_in_flight_bytes": BOUND, "batch_size": 50}) as relay:
        scale.relay = relay
        await stage.until(lambda: len(stage.transport.deliveries) == len(sizes), within=600)
    assert_in_order(stage.transport.deliveries)
    return scale


def assert_in_order(arrived: list[Outgoing]) -> None:
    by_key: defaultdict[str | None, list[str]] = defaultdict(list)
    for one in arrived:
        by_key[one.message.key].append(one.message.event_id)
    assert all(ids == sorted(ids) for ids in by_key.values())


@pytest.mark.parametrize("seed", range(5))
def test_messages_in_flight_stay_within_the_bound(seed: int) -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = Stage(simulation)
        scale = await carried(stage, [simulation.rng.randrange(1, 1300) for _ in range(200)])
        assert BOUND // 2 < scale.heaviest <= BOUND

    simulate(scenario, seed=seed)


@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_fetched_beyond_the_free_capacity(seed: int) -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = Stage(simulation)
        # Sends take some time, so that messages stay in flight while the relay fetches more.
        stage.transport = MemoryTransport(clock=simulation.clock, latency=lambda: simulation.rng.uniform(0.5, 3))
        fetch, most = stage.store.messages.fetch, 0

        async def weighed(query: FetchQuery) -> Fetched:
            nonlocal most
            found = await fetch(query)
            most = max(most, relay._context.in_flight.bytes + sum(message.size for message in found))
            return found

        stage.store.messages.fetch = weighed  # type: ignore[method-assign, assignment]
        sizes = [simulation.rng.randrange(1, 600) for _ in range(150)]
        stage.record(*numbered(sizes))
        async with stage.running(tuned={"max_in_flight_bytes": BOUND, "batch_size": 50}) as relay:
            await stage.until(lambda: len(stage.transport.deliveries) == len(sizes), within=600)
        assert BOUND // 2 < most <= BOUND

    simulate(scenario, seed=seed)


@pytest.mark.parametrize("seed", range(5))
def test_an_event_larger_than_the_bound_is_sent_alone_and_the_others_flow(seed: int) -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = Stage(simulation)
        sizes = [BOUND * 2 if n % 17 == 3 else 100 for n in range(100)]
        scale = await carried(stage, sizes)
        assert {scale.beside[f"{n:04}"] for n, size in enumerate(sizes) if size > BOUND} == {0}
        assert max(scale.beside.values()) > 5

    simulate(scenario, seed=seed)


@pytest.mark.parametrize("seed", range(5))
def test_large_events_are_retried_alone_too(seed: int) -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = Stage(simulation)
        sizes = [BOUND * 2 if n % 7 == 3 else 900 for n in range(70)]
        refused: set[str] = set()

        def refuse_once(one: Outgoing) -> SendResult:
            if one.message.event_id in refused:
                return None
            refused.add(one.message.event_id)
            return RejectedError("not now")

        scale = await carried(stage, sizes, refuse=refuse_once)
        assert {scale.beside[f"{n:04}"] for n, size in enumerate(sizes) if size > BOUND} == {0}

    simulate(scenario, seed=seed)


@pytest.mark.parametrize("refused", [False, True])
def test_a_large_event_is_not_starved_by_small_ones(refused: bool) -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = Stage(simulation)
        arrived: list[str] = []
        tried: set[str] = set()
        number = 0

        def and_two_more(one: Outgoing) -> SendResult:
            nonlocal number
            event_id = one.message.event_id
            if refused and event_id not in tried:
                # They wait for their retry, and others of their keys wait for them.
                tried.add(event_id)
                return RejectedError("not now")
            arrived.append(event_id)
            for _ in range(2 if number < 2000 else 0):
                number += 1
                stage.record(Event("t", bytes(500), event_id=f"small {number}", key=f"key {number % 40}"))
            return None

        stage.transport.script(and_two_more)
        stage.record(*(Event("t", bytes(500), event_id=f"first {n}", key=f"key {n}") for n in range(40)))
        stage.record(Event("t", bytes(BOUND * 3), event_id="large", key="large"))
        async with stage.running(tuned={"max_in_flight_bytes": BOUND, "batch_size": 50}):
            await stage.until(lambda: "large" in arrived, within=600)
        assert arrived.index("large") < 500

    simulate(scenario, seed=1)


@pytest.mark.parametrize("seed", [2, 4, *range(100, 108)])
def test_large_and_small_parked_events_of_several_destinations_all_arrive(seed: int) -> None:
    """With seeds 2 and 4 a relay once fetched the same small event forever, and so never the large one alone."""

    async def scenario(simulation: Simulation) -> None:
        rng, names = Random(seed), ("a", "b", "c")
        breaker = BreakerConfig(first_delay="500ms", max_delay="500ms", jitter="none")
        stage = Stage(simulation, replace(CONFIG, breaker=breaker))
        stage.transport = MemoryTransport(clock=simulation.clock, latency=0.001)
        failures = [UnavailableError("no") if rng.random() < 0.2 else None for _ in range(300)]
        stage.transport.script(lambda _: failures.pop() if failures else None)
        stage.record(
            *(
                Event(rng.choice(names), {"p": "x" * rng.choice([0, 50, 3000])}, event_id=f"{number}")
                for number in range(300)
            )
        )
        async with stage.running(
            destinations={name: MemoryTransport.to(name) for name in names},
            routes=[Route(event_type=name, to=[name]) for name in names],
            tuned={"batch_size": 3, "max_in_flight_batches": 1, "max_in_flight_bytes": "2000 B"},
        ):
            await stage.until(lambda: len(set(ids(stage.transport.deliveries))) == 300, within=300)

    simulate(scenario, seed=seed)
