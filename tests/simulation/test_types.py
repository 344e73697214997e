"""Destinations derived from event types: as many as allowed, found during outages of others, and removed again."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from pillarbox import Event, Relay
from pillarbox.core.errors import NackedError, UnavailableError
from pillarbox.core.fetch import Fetched, FetchQuery
from pillarbox.core.message import Held
from pillarbox.core.observations import BreakerChanged, EventRetried
from pillarbox.relay.destinations import IDLE_AFTER, MAX_IDLE_STATES
from pillarbox.relay.placement import NO_ROUTE_RATE
from pillarbox.relay.routing import Route
from pillarbox.testing.simulation import Simulation, simulate
from pillarbox.transports.memory import MemoryTransport
from tests.simulation.hosts import Machine, MachineStore
from tests.simulation.stage import Stage, ids


class Counter:
    """A lock that counts its acquisitions."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.taken = 0

    def __enter__(self) -> None:
        self._lock.acquire()
        self.taken += 1

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def test_events_of_more_types_than_allowed_wait_and_the_others_flow() -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = Stage(simulation)
        stage.record(*(Event(f"type {n}", {}, event_id=f"first {n}") for n in range(10)))
        async with stage.running(tuned={"max_destinations": 10}):
            await stage.until(lambda: len(stage.transport.deliveries) == 10)
            stage.record(*(Event(f"type {n}", {}, event_id=f"again {n}") for n in range(20)))
            await stage.until(lambda: len(stage.transport.deliveries) == 20)
            await stage.rest(5)
        assert sorted(ids(stage.transport.deliveries)[10:]) == sorted(f"again {n}" for n in range(10))
        errors = {one.error for one in stage.seen(EventRetried)}
        assert all("created 10 destinations, which is relay.max_destinations" in error for error in errors)
        assert {one.message.event_id for one in stage.seen(EventRetried)} == {f"again {n}" for n in range(10, 20)}
        async with stage.running(tuned={"max_destinations": 20}):
            await stage.until(lambda: len(stage.transport.deliveries) == 30, within=200)

    simulate(scenario, seed=1)


def test_the_cached_values_of_a_type_are_dropped_once_no_event_arrives() -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = Stage(simulation)
        stage.record(*(Event(f"type {n}", {}) for n in range(300)))
        async with stage.running() as relay:
            await stage.until(lambda: len(stage.transport.deliveries) == 300)
            await stage.rest(IDLE_AFTER / 2)
            assert len(list(relay._context.destinations)) == 300
            await stage.until(lambda: not list(relay._context.destinations), within=IDLE_AFTER * 2)
            assert relay._context.in_flight.destinations() == []
            stage.record(Event("type 7", {}, event_id="later"))
            await stage.until(lambda: ids(stage.transport.deliveries)[-1] == "later")

    simulate(scenario, seed=1)


@pytest.mark.parametrize("keys", [0, 9])
def test_an_unavailable_destination_does_not_hide_unknown_destinations(keys: int) -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = Stage(simulation)
        stage.transport.fail_when(lambda one: one.message.event_type == "full", NackedError("the queue is full"))
        key = [None] if keys == 0 else [f"{n}" for n in range(keys)]
        stage.record(*(Event("full", {}, event_id=f"full {n:03}", key=key[n % len(key)]) for n in range(200)))
        stage.record(*(Event("other", {}, event_id=f"other {n}") for n in range(20)))
        async with stage.running(tuned={"batch_size": 20, "max_in_flight_batches": 1}):
            await stage.until(lambda: len(stage.transport.delivered("other")) == 20, within=120)
            assert stage.transport.delivered("full") == []
            stage.transport.succeed()
            await stage.until(lambda: len(stage.transport.delivered("full")) == 200, within=600)

    simulate(scenario, seed=1)


@pytest.mark.parametrize("how", ["paused", "breaker open", "paused in an outage"])
def test_a_destination_forced_open_does_not_hide_unknown_destinations(how: str) -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = Stage(simulation)
        stage.transport.fail_when(lambda one: one.message.event_type == "closed", UnavailableError("cut off"))
        stage.record(*(Event("closed", {}) for n in range(200)))
        stage.record(Event("other", {}))
        if how == "paused":
            await stage.store.admin.requests.override("closed", paused=True)
        elif how == "breaker open":
            await stage.store.admin.requests.override("closed", breaker="open")
        async with stage.running(tuned={"batch_size": 20, "max_in_flight_batches": 1}):
            if how == "paused in an outage":
                await stage.until(lambda: any(one.state == "open" for one in stage.seen(BreakerChanged)))
                await stage.store.admin.requests.override("closed", paused=True)
            await stage.until(lambda: len(stage.transport.delivered("other")) == 1, within=120)
        assert stage.transport.delivered("closed") == []

    simulate(scenario, seed=1)


def test_an_outage_parks_nothing_for_destinations_that_may_not_exist() -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = Stage(simulation)
        stage.transport.outage()
        fetch = stage.store.messages.fetch

        async def fetch_slowly(look: FetchQuery) -> Fetched:
            found = await fetch(look)
            # Long enough for an outage to begin while fetched messages are in flight.
            await simulation.clock.sleep(simulation.rng.uniform(0, 0.2))
            return found

        stage.store.messages.fetch = fetch_slowly  # type: ignore[method-assign, assignment]
        stage.record(*(Event("only", {}) for n in range(200)))
        async with stage.running(tuned={"batch_size": 20, "max_in_flight_batches": 3}):
            await stage.rest(60)
        assert {stored.message.held for stored in stage.store._tables.waiting.values()}.isdisjoint({Held.PARKED})

    for seed in range(5):
        simulate(scenario, seed=seed)


def test_an_idle_relay_runs_as_few_statements_for_any_number_of_types() -> None:
    def asked(types: int) -> int:
        async def scenario(simulation: Simulation) -> int:
            stage, counter = Stage(simulation), Counter()
            stage.record(*(Event(f"type {n}", {}) for n in range(types)))
            async with stage.running():
                await stage.until(lambda: len(stage.transport.deliveries) == types)
                await stage.rest(10)
                stage.store._tables.lock = counter  # type: ignore[assignment] # taken once by every statement
                await stage.rest(30)
                return counter.taken

        return simulate(scenario, seed=1)

    few, many = asked(3), asked(900)
    assert abs(many - few) <= few // 100  # Polls do not begin at the same time.


def test_the_caches_of_a_relay_are_bounded_for_any_number_of_types() -> None:
    async def scenario(simulation: Simulation) -> None:
        stage, types, met = Stage(simulation), 3 * MAX_IDLE_STATES, [0]
        stage.record(*(Event(f"type {n}", {}) for n in range(types)))
        relay: Relay = stage.relay(
            tuned={"max_destinations": types, "batch_size": 50},
            observers=[lambda _: met.append(len(list(relay._context.destinations)))],
        )
        async with relay:
            await stage.until(lambda: len(stage.transport.deliveries) == types)
        assert MAX_IDLE_STATES / 2 < max(met) <= MAX_IDLE_STATES + 2 * 50 * 3

    simulate(scenario, seed=1)


@pytest.mark.parametrize("by_type", [True, False], ids=["too many types", "no route"])
def test_events_with_a_route_flow_however_many_have_none(by_type: bool) -> None:
    ways: dict[str, Any] = {"destinations": {"known": MemoryTransport.to("known")}}
    ways = {} if by_type else ways | {"routes": [Route(event_type="known", to=["known"])]}
    unknown = 4000

    async def scenario(simulation: Simulation) -> None:
        stage = Stage(simulation)
        stage.record(Event("known", {}, event_id="first"))
        # A slow store, so that every row that is read again costs time.
        store = MachineStore(stage.store, Machine(simulation, store_latency=0.1))
        async with stage.running(store=store, tuned={"max_destinations": 1, "batch_size": 100}, **ways):
            await stage.until(lambda: ids(stage.transport.deliveries) == ["first"])
            stage.record(*(Event(f"type {n}", {}, event_id=f"unknown {n}") for n in range(unknown)))
            stage.record(Event("known", {}, event_id="behind them"))
            await stage.until(lambda: len(stage.transport.deliveries) == 2, within=unknown / 100)
            assert len(stage.seen(EventRetried)) < 1.25 * unknown, "they are passed once"
            before = len(stage.seen(EventRetried))
            await stage.rest(60)
            assert 60 < len(stage.seen(EventRetried)) - before < 1.5 * 60 * NO_ROUTE_RATE
            stage.record(Event("known", {}, event_id="later"))
            await stage.until(lambda: len(stage.transport.deliveries) == 3, within=2)

    simulate(scenario, seed=1)
