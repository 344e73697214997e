"""The ways to run a relay, and what ends it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest

from pillarbox import Event, RetentionConfig
from pillarbox.core.errors import ConfigurationError, PermanentError, RejectedError, RelayFailedError
from pillarbox.core.observations import (
    LanesReleased,
    LeaseLost,
    OperatorRequestsExecuted,
    Pruned,
    RelayDisabled,
    RelayStarted,
    RelayStopped,
    Sending,
)
from pillarbox.core.rows import InboxRecord
from pillarbox.core.transport import Outgoing, SendResult
from pillarbox.relay.routing import Destination, Route
from pillarbox.stores.memory import MemoryStore
from pillarbox.testing.lookup import dead_letters, find_event
from pillarbox.testing.simulation import Simulation, simulate
from pillarbox.transports.memory import MemoryTransport
from tests.simulation.stage import Stage, ids


def run_scenario(scenario: Callable[[Stage], Awaitable[None]]) -> None:
    async def staged(simulation: Simulation) -> None:
        await scenario(Stage(simulation))

    for seed in range(5):
        simulate(staged, seed=seed)


def test_once_delivers_one_fetch_and_leaves_the_rest() -> None:
    async def scenario(stage: Stage) -> None:
        stage.record(*(Event("a", {}, event_id=f"{n}", key="k") for n in range(25)))
        relay = stage.relay(tuned={"batch_size": 10})
        assert await relay.run_once() == 10
        assert ids(stage.transport.deliveries) == [f"{n}" for n in range(10)]
        assert await stage.relay(tuned={"batch_size": 10}).run_once() == 10
        assert await stage.relay(tuned={"batch_size": 10}).run_once() == 5
        assert await stage.relay(tuned={"batch_size": 10}).run_once() == 0
        assert len(stage.transport.deliveries) == 25
        assert (await stage.store.admin.inspection.overview()).relays == []

    run_scenario(scenario)


def test_once_counts_messages_whatever_their_outcome() -> None:
    async def scenario(stage: Stage) -> None:
        stage.record(*(Event("a", {}, event_id=event_id) for event_id in ("delivered", "rejected", "dead")))
        stage.transport.fail_when(lambda one: one.message.event_id == "rejected", RejectedError("not now"))
        stage.transport.fail_when(lambda one: one.message.event_id == "dead", PermanentError("never"))
        assert await stage.relay().run_once() == 3
        assert ids(stage.transport.deliveries) == ["delivered"]

    run_scenario(scenario)


def test_once_delivers_the_copies_of_split_messages() -> None:
    async def scenario(stage: Stage) -> None:
        stage.record(Event("a", {}, event_id="1"))
        places = {name: MemoryTransport.to(name) for name in ("left", "right")}
        assert await stage.relay(destinations=places, routes=[Route(to=list(places))]).run_once() == 2
        assert ids(stage.transport.delivered("left")) == ids(stage.transport.delivered("right")) == ["1"]

    run_scenario(scenario)


def test_once_delivers_only_its_time_range() -> None:
    async def scenario(stage: Stage) -> None:
        stage.record(Event("a", {}, event_id="early"))
        await stage.rest(60)
        then = stage.simulation.clock.now()
        await stage.rest(60)
        stage.record(Event("a", {}, event_id="late"))
        assert await stage.relay().run_once(recorded_after=then, recorded_before=then + timedelta(hours=1)) == 1
        assert ids(stage.transport.deliveries) == ["late"]

    run_scenario(scenario)


@pytest.mark.parametrize("way", ["run", "run_once", "run_until_empty"])
def test_a_disabled_relay_delivers_nothing_and_reports_it(way: str) -> None:
    async def scenario(stage: Stage) -> None:
        stage.record(Event("a", {}))
        await getattr(stage.relay(tuned={"enabled": False}), way)()
        assert stage.transport.deliveries == []
        assert len(stage.seen(RelayDisabled)) == 1
        assert stage.seen(RelayStarted) == []

    run_scenario(scenario)


def test_a_relay_that_leaves_reports_the_lanes_it_released() -> None:
    async def scenario(stage: Stage) -> None:
        await stage.relay().run_until_empty()
        assert sorted(lane for one in stage.seen(LanesReleased) for lane in one.lanes) == list(range(8))

    run_scenario(scenario)


class Faulty(MemoryTransport):
    """Violates its contract sometimes."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.faults = 0

    async def send(self, batch: Sequence[Outgoing]) -> list[SendResult]:
        self.faults += 1
        if self.faults == 1:
            raise KeyError("a mistake of its author")
        answers = await super().send(batch)
        return answers[:-1] if self.faults == 2 else answers


def test_a_transport_that_breaks_its_contract_loses_nothing() -> None:
    async def scenario(stage: Stage) -> None:
        stage.record(*(Event("a", {}, event_id=f"{n}", key="k") for n in range(3)))
        faulty = Faulty(clock=stage.simulation.clock)
        async with stage.running(transports={"faulty": faulty}):
            await stage.until(lambda: faulty.faults >= 2)
            [row] = await find_event(stage.store, "0")
            assert row.last_error is not None
            assert row.last_error.startswith("UnavailableError: transport Faulty raised an unexpected error")
            await stage.until(lambda: not stage.store._tables.waiting, within=120)
        assert list(dict.fromkeys(ids(faulty.deliveries))) == ["0", "1", "2"]

    run_scenario(scenario)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ZeroDivisionError("a mistake of its author"), "ZeroDivisionError: a mistake of its author"),
        (MemoryError(), "MemoryError: the process has no memory left; give it more, or lower max_in_flight_bytes"),
    ],
    ids=["mistake", "memory"],
)
def test_an_unexpected_error_stops_the_relay_with_its_cause(error: Exception, reason: str) -> None:
    class Broken(MemoryStore):
        """Its fetches raise an error that no store may raise."""

        async def parked_destinations(self, lanes: Sequence[int]) -> list[str]:
            raise error

    async def scenario(stage: Stage) -> None:
        broken = Broken(lanes=8, clock=stage.simulation.clock)
        broken.messages.parked_destinations = broken.parked_destinations  # type: ignore[method-assign, assignment] # the fault
        stage.store = broken
        with pytest.raises(RelayFailedError, match=reason) as failed:
            await stage.relay().run()
        assert failed.value.__cause__ is error
        assert (await broken.admin.inspection.overview()).relays == []

    run_scenario(scenario)


def test_messages_parked_for_an_unknown_destination_are_found() -> None:
    async def scenario(stage: Stage) -> None:
        stage.record(Event("open", {}, event_id="o"), Event("shut", {}, event_id="s"))
        await stage.store.admin.requests.override("shut", paused=True)
        async with stage.running():
            await stage.until(lambda: ids(stage.transport.deliveries) == ["o"])
            stage.record(Event("shut", {}, event_id="t", key="k"), Event("open", {}, event_id="p"))
            await stage.until(lambda: len(stage.transport.deliveries) == 2)
            await stage.rest(2)
        assert [name for lane in stage.store._tables.lanes for name in lane.parked] != []
        await stage.store.admin.requests.override("shut", paused=False)
        await stage.relay().run_until_empty()  # It has met no destination.
        assert sorted(ids(stage.transport.delivered("shut"))) == ["s", "t"]

    run_scenario(scenario)


def test_a_slow_destination_does_not_use_all_messages_in_flight() -> None:
    async def scenario(stage: Stage) -> None:
        places: dict[str, Any] = {
            "slow": Destination(MemoryTransport.to("slow"), rate_limit="2/s"),
            "fast": MemoryTransport.to("fast"),
        }
        routes = [Route(event_type="slow", to=["slow"]), Route(event_type="fast", to=["fast"])]
        stage.record(*(Event("slow", {}, event_id=f"s{n}", key=f"s{n % 5}") for n in range(100)))
        stage.record(*(Event("fast", {}, event_id=f"f{n}", key=f"f{n % 5}") for n in range(100)))
        began = stage.now
        async with stage.running(
            destinations=places, routes=routes, tuned={"batch_size": 10, "max_in_flight_batches": 2}
        ):
            await stage.until(lambda: len(stage.transport.delivered("fast")) == 100)
            assert len(stage.transport.delivered("slow")) <= 2 * (stage.now - began) + 3
            await stage.until(lambda: len(stage.transport.delivered("slow")) == 100, within=120)
        for number in range(5):
            line = [one for one in ids(stage.transport.delivered("slow")) if int(one[1:]) % 5 == number]
            assert line == [f"s{n}" for n in range(number, 100, 5)]

    run_scenario(scenario)


def test_a_pause_releases_waiting_messages_in_flight_and_does_not_delay_until_empty() -> None:
    async def scenario(stage: Stage) -> None:
        stage.transport.latch.close()
        stage.record(*(Event("a", {}, event_id=f"{n}", key="k") for n in range(5)))
        relay = stage.relay()
        async with relay:
            await stage.until(lambda: stage.transport.latch.held == 1)
            assert len(relay._context.in_flight) == 5
            await stage.store.admin.requests.override("a", paused=True)
            await stage.until(lambda: len(relay._context.in_flight) == 1)
            stage.transport.latch.open()
        await stage.relay().run_until_empty()
        assert ids(stage.transport.deliveries) == ["0"]

    run_scenario(scenario)


def test_an_outage_behind_a_breaker_forced_closed_is_reported_and_probed_less_and_less_often() -> None:
    async def scenario(stage: Stage) -> None:
        stage.transport.outage()
        stage.record(Event("a", {}))
        await stage.store.admin.requests.override("a", breaker="closed")
        async with stage.running(tuned={"poll_interval": "1s"}):
            await stage.rest(120)
            [row] = await stage.store.destinations.overrides()
            assert row.last_error is not None
            assert len(stage.seen(Sending)) < 200
            stage.transport.heal()
            await stage.until(lambda: len(stage.transport.deliveries) == 1, within=120)
            await stage.rest(5)
        assert [row.last_error for row in await stage.store.destinations.overrides()] == [None]

    run_scenario(scenario)


def test_a_report_of_a_relay_that_left_ends_once_another_relay_sends() -> None:
    async def scenario(stage: Stage) -> None:
        stage.record(Event("a", {}))
        await stage.store.admin.requests.override("a", breaker="closed")
        await stage.store.destinations.report("a", error="connection refused", next_attempt=5)
        async with stage.running():
            await stage.until(lambda: len(stage.transport.deliveries) == 1)
            await stage.rest(5)
        assert [row.last_error for row in await stage.store.destinations.overrides()] == [None]

    run_scenario(scenario)


def test_it_waits_for_its_initial_delay_before_its_first_fetch() -> None:
    async def scenario(stage: Stage) -> None:
        began = stage.now
        stage.record(Event("a", {}))
        async with stage.running(tuned={"initial_delay": "2s"}):
            await stage.until(lambda: bool(stage.transport.deliveries))
        assert 2 <= stage.now - began <= 3

    run_scenario(scenario)


def test_a_cancelled_relay_drains() -> None:
    async def scenario(stage: Stage) -> None:
        stage.transport.latch.close()
        stage.record(Event("a", {}, event_id="1", key="k"), Event("a", {}, event_id="2", key="k"))
        running = asyncio.create_task(stage.relay().run())
        await stage.until(lambda: stage.transport.latch.held == 1)
        running.cancel()
        await stage.rest(1)
        assert not running.done()  # It waits for what is in flight.
        stage.transport.latch.open()
        with pytest.raises(asyncio.CancelledError):
            await running
        [first], [second] = await find_event(stage.store, "1"), await find_event(stage.store, "2")
        assert (first.status, second.status) == ("PUBLISHED", "PENDING")
        assert (await stage.store.admin.inspection.overview()).relays == []

    run_scenario(scenario)


def test_a_drain_ends_at_its_timeout() -> None:
    async def scenario(stage: Stage) -> None:
        stage.transport.latch.close()
        stage.record(Event("a", {}, event_id="1"))
        async with stage.running(tuned={"drain_timeout": "3s"}):
            await stage.until(lambda: stage.transport.latch.held == 1)
            began = stage.now
        assert 3 <= stage.now - began <= 4
        [stopped] = stage.seen(RelayStopped)
        assert not stopped.drained
        [row] = await find_event(stage.store, "1")
        assert row.status == "PENDING"  # Nothing is lost: another relay sends it again.

    run_scenario(scenario)


@pytest.mark.parametrize(("on_exhausted", "goes_on"), [("skip", True), ("block", False)])
def test_after_a_dead_letter_the_key_continues_or_waits_for_an_operator(on_exhausted: str, goes_on: bool) -> None:
    async def scenario(stage: Stage) -> None:
        stage.transport.fail_when(lambda one: one.message.event_id == "bad", PermanentError("never"))
        stage.record(*(Event("a", {}, event_id=name, key="k") for name in ("bad", "next")))
        await stage.relay(tuned={"on_exhausted": on_exhausted}).run_until_empty()
        [bad], [following] = await find_event(stage.store, "bad"), await find_event(stage.store, "next")
        assert bad.status == "FAILED"
        assert following.status == ("PUBLISHED" if goes_on else "PENDING")
        if not goes_on:
            await stage.store.admin.requests.add("discard", [("bad", "a")], by="an operator")
            async with stage.running():
                await stage.until(lambda: ids(stage.transport.deliveries) == ["next"])

    run_scenario(scenario)


def test_thousands_of_operator_requests_are_executed_by_the_thousand() -> None:
    async def scenario(stage: Stage) -> None:
        await stage.store.admin.requests.add("retry", [(f"gone {n}", "") for n in range(1500)], by="an operator")
        async with stage.running():
            await stage.until(lambda: len(stage.seen(OperatorRequestsExecuted)) == 2)
        assert [seen.count for seen in stage.seen(OperatorRequestsExecuted)] == [1000, 500]

    run_scenario(scenario)


def test_retention_drops_what_is_old_and_one_relay_does_it() -> None:
    async def scenario(stage: Stage) -> None:
        stage.transport.fail_when(lambda one: one.message.event_id == "bad", PermanentError("never"))
        stage.record(Event("a", {}, event_id="good"), Event("a", {}, event_id="bad"))
        kept = {"retention": RetentionConfig(history="2m", dead="5m"), "poll_interval": "2s"}
        async with stage.running(tuned=kept), stage.running(tuned=kept):
            await stage.until(lambda: len(stage.store._tables.history) == 1)
            await stage.rest(200)
            assert await find_event(stage.store, "good") == []
            assert len(await dead_letters(stage.store)) == 1
            await stage.rest(200)
            assert await dead_letters(stage.store) == []
        assert len({one.relay for one in stage.seen(Pruned)}) == 1

    run_scenario(scenario)


def test_retention_continues_while_rows_are_expired_and_the_relay_keeps_delivering() -> None:
    async def scenario(stage: Stage) -> None:
        old = stage.simulation.clock.now() - timedelta(days=1000)
        inbox_records = stage.store._tables.inbox
        inbox_records.update({InboxRecord(consumer="billing", event_id=f"{n}"): old for n in range(20_500)})
        async with stage.running():
            await stage.until(lambda: not inbox_records, within=10)
            stage.record(Event("a", {}, event_id="1"))
            await stage.until(lambda: ids(stage.transport.deliveries) == ["1"])
            assert sum(one.count for one in stage.seen(Pruned)) == 20_500
        assert stage.seen(LeaseLost) == []

    run_scenario(scenario)


def test_one_relay_may_run_again_and_again() -> None:
    async def scenario(stage: Stage) -> None:
        relay = stage.relay()
        for number in range(3):
            stage.record(Event("a", {}, event_id=f"{number}", key="k"))
            assert await relay.run_until_empty() == 0
            stage.record(Event("a", {}, event_id=f"{number} more", key="k"))
            assert await relay.run_once() == 1
            stage.record(Event("a", {}, event_id=f"{number} last", key="k"))
            async with relay:
                await stage.until(lambda: not stage.store._tables.waiting)
        assert len(stage.transport.deliveries) == 9

    run_scenario(scenario)


def test_one_relay_does_not_run_twice_at_once() -> None:
    async def scenario(stage: Stage) -> None:
        async with stage.running() as relay:
            await stage.until(lambda: bool(stage.seen(RelayStarted)))
            with pytest.raises(ConfigurationError, match="is already running"):
                await relay.run_once()
            stage.record(Event("a", {}))
            await stage.until(lambda: len(stage.transport.deliveries) == 1)

    run_scenario(scenario)
