"""After an outage, in virtual time: how soon events flow again, how often relays probe, and which relay may send."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pillarbox import Event
from pillarbox.core.errors import ConfigurationError, StoreUnavailableError, UnavailableError
from pillarbox.core.lane import RelaySession
from pillarbox.core.observations import (
    BreakerChanged,
    EventRetried,
    LeaseLost,
    RelayStarted,
    Sending,
    StoreFailed,
    StoreRestored,
    TransportConnected,
    TransportFailed,
)
from pillarbox.core.retry import MAX_RECONNECT_PAUSE
from pillarbox.ops.health import destinations_of, flow
from pillarbox.relay.config import BreakerConfig
from pillarbox.retry_policies import FixedDelay
from pillarbox.testing.lookup import find_event
from pillarbox.testing.simulation import Simulation, simulate
from tests.simulation.plan import Plan
from tests.simulation.stage import Stage, ids
from tests.simulation.test_ways_to_run import run_scenario
from tests.simulation.world import World

FLOWS_WITHIN = 3.0
OUTAGE = 120.0
SCHEDULES = 60


def test_events_flow_within_three_seconds_after_the_broker_is_back() -> None:
    async def scenario(stage: Stage) -> None:
        async with stage.running():
            stage.transport.outage()
            stage.record(*(Event("a", {}, event_id=str(number)) for number in range(10)))
            await stage.rest(OUTAGE + stage.simulation.rng.random())
            stage.transport.heal()
            healed = stage.now
            await stage.until(lambda: len(stage.transport.deliveries) == 10, within=FLOWS_WITHIN)
            assert stage.now - healed <= FLOWS_WITHIN
        probes = len(stage.seen(Sending)) + len(stage.seen(TransportFailed))
        assert OUTAGE / MAX_RECONNECT_PAUSE < probes < 4 * OUTAGE, "neither asleep nor in a hot loop"

    run_scenario(scenario)


def test_a_breaker_that_probes_every_second_sends_a_second_after_the_broker_is_back() -> None:
    async def scenario(stage: Stage) -> None:
        async with stage.running(tuned={"breaker": BreakerConfig(first_delay="1s", max_delay="1s", jitter="none")}):
            stage.transport.outage()
            stage.record(Event("a", {}, event_id="1"))
            await stage.rest(OUTAGE + stage.simulation.rng.random())
            stage.transport.heal()
            healed = stage.now
            await stage.until(lambda: len(stage.transport.deliveries) == 1, within=FLOWS_WITHIN)
            assert stage.now - healed <= 1.1
        # The first send and one probe each second: no more, and not many fewer, because each takes some time.
        assert OUTAGE * 0.9 < len(stage.seen(Sending)) <= OUTAGE + 3

    run_scenario(scenario)


def test_a_reconnected_transport_closes_the_breaker_although_no_event_waits() -> None:
    async def scenario(stage: Stage) -> None:
        # No probe would be sent for an hour.
        async with stage.running(tuned={"breaker": BreakerConfig(first_delay="1h", max_delay="1h")}):
            stage.transport.outage()
            stage.record(Event("a", {}, event_id="1"))
            await stage.until(lambda: bool(stage.seen(BreakerChanged)))
            await stage.rest(30)
            assert stage.seen(TransportFailed)
            assert {one.state for one in stage.seen(BreakerChanged)} == {"open"}
            stage.transport.heal()
            await stage.until(lambda: stage.seen(BreakerChanged)[-1].state == "closed", within=FLOWS_WITHIN)
            assert stage.seen(TransportConnected)[-1].seconds > 29
            await stage.until(lambda: ids(stage.transport.deliveries) == ["1"], within=FLOWS_WITHIN)

    run_scenario(scenario)


def test_a_relay_waits_for_a_broker_that_starts_later_and_reports_it_at_once() -> None:
    async def scenario(stage: Stage) -> None:
        stage.transport.outage()
        async with stage.running() as relay:
            await stage.until(lambda: bool(stage.seen(TransportFailed)), within=1)
            assert "memory" in relay.waits_for
            await stage.rest(60)
            stage.transport.heal()
            await stage.until(lambda: relay.waits_for == {}, within=FLOWS_WITHIN)
            stage.record(Event("a", {}, event_id="1"))
            await stage.until(lambda: ids(stage.transport.deliveries) == ["1"], within=FLOWS_WITHIN)

    run_scenario(scenario)


def unreachable_store(stage: Stage) -> asyncio.Event:
    """A store that is unavailable until the event is set."""
    back, check = asyncio.Event(), stage.store.schema.check

    async def asked() -> None:
        if not back.is_set():
            raise StoreUnavailableError("connection refused")
        await check()

    stage.store.schema.check = asked  # type: ignore[method-assign, assignment]
    return back


def test_a_relay_waits_for_a_store_that_starts_later_and_reports_it_at_once() -> None:
    async def scenario(stage: Stage) -> None:
        back = unreachable_store(stage)
        stage.record(Event("a", {}, event_id="1"))
        async with stage.running() as relay:
            await stage.until(lambda: bool(stage.seen(StoreFailed)), within=1)
            assert relay.waits_for["store"] == "connection refused"
            await stage.rest(OUTAGE)
            assert stage.seen(RelayStarted) == []
            assert OUTAGE / MAX_RECONNECT_PAUSE < len(stage.seen(StoreFailed)) < 4 * OUTAGE
            back.set()
            await stage.until(lambda: ids(stage.transport.deliveries) == ["1"], within=FLOWS_WITHIN)
            assert len(stage.seen(StoreRestored)) == 1
            assert relay.waits_for == {}

    run_scenario(scenario)


def test_a_relay_that_waits_for_its_store_can_be_stopped() -> None:
    async def scenario(stage: Stage) -> None:
        unreachable_store(stage)
        async with stage.running():
            await stage.until(lambda: bool(stage.seen(StoreFailed)), within=1)
        assert stage.seen(RelayStarted) == []

    run_scenario(scenario)


def test_fail_fast_waits_for_neither() -> None:
    async def scenario(stage: Stage) -> None:
        stage.transport.outage()
        with pytest.raises(UnavailableError, match="outage"):
            await stage.relay(fail_fast=True).run()
        stage.transport.heal()
        unreachable_store(stage)
        with pytest.raises(StoreUnavailableError, match="refused"):
            await stage.relay(fail_fast=True).run()
        with pytest.raises(StoreUnavailableError, match="refused"):
            await stage.relay().run_once()

    run_scenario(scenario)


class CutOff(World):
    """Relays that run, and send, while others have expired them."""

    async def _freeze_some(self) -> None:
        await asyncio.gather(super()._freeze_some(), self._end_sessions())

    async def _end_sessions(self) -> None:
        for _ in range(4):
            await self.simulation.clock.sleep(self.simulation.rng.random() * 10)
            for process in self.processes:
                # Every other relay may end its lease, and a heartbeat later it is too late.
                if self.simulation.rng.random() < 0.7:
                    self.faults += 1
                    self.expired.add(process.relay.id)
                    await self.store.lanes.expire([RelaySession(relay=process.relay.id, token="")])


def test_a_running_relay_whose_lease_expired_is_fenced_and_order_is_kept() -> None:
    taken = 0
    for seed in range(SCHEDULES):

        async def scenario(simulation: Simulation) -> None:
            nonlocal taken
            world = CutOff(simulation, Plan.drawn(simulation.rng))
            await world.run()
            taken += sum(isinstance(one, LeaseLost) for one in world.observed)

        try:
            simulate(scenario, seed=seed, max_time=86_400, max_steps=5_000_000)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
    assert taken > SCHEDULES / 4, "hardly any relay lost its lanes: the runs are void"


@pytest.mark.parametrize(
    "settings", [{"first_delay": "0s"}, {"first_delay": "5s"}, {"max_delay": "never"}, {"jitter": "some"}]
)
def test_invalid_probe_settings_are_rejected(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=f"BreakerConfig.*{next(iter(settings))}"):
        BreakerConfig(**settings)


def test_an_outage_that_counts_is_shown_and_over_with_the_first_success() -> None:
    async def scenario(stage: Stage) -> None:
        policy = FixedDelay(delay="30s", max_attempts="unlimited")
        async with stage.running(tuned={"outages": "count"}, retry=policy):
            stage.transport.outage()
            stage.record(Event("a", {}, event_id="1"))
            await stage.until(lambda: bool(stage.seen(EventRetried)))
            await stage.rest(3)
            overview = await stage.store.admin.inspection.overview()
            overrides = await stage.store.destinations.overrides()
            shown = flow(overview, destinations_of(overview.relays, overrides), paused=False)
            assert (shown.state, "outage" in shown.reason) == ("degraded", True)
            stage.transport.heal()
            await stage.until(lambda: ids(stage.transport.deliveries) == ["1"])
            await stage.rest(3)
            overview = await stage.store.admin.inspection.overview()
            overrides = await stage.store.destinations.overrides()
            assert flow(overview, destinations_of(overview.relays, overrides), paused=False).state == "flowing"

    run_scenario(scenario)


def test_every_failed_send_of_an_outage_counts_and_only_the_first_are_announced_individually() -> None:
    async def scenario(stage: Stage) -> None:
        async with stage.running():
            stage.transport.outage()
            stage.record(*(Event("a", {}, event_id=str(number)) for number in range(3)))
            await stage.rest(30)
            retried, sent = stage.seen(EventRetried), sum(len(one.messages) for one in stage.seen(Sending))
            assert len(retried) == sent > 10
            assert sorted(one.message.event_id for one in retried if not one.probe) == ["0", "1", "2"]
            assert all(one.delay > 0 for one in retried), "the next attempt is not now"
            stage.transport.heal()
            await stage.until(lambda: len(stage.transport.deliveries) == 3, within=FLOWS_WITHIN)

    run_scenario(scenario)


def test_an_event_recorded_during_an_outage_shows_the_state_of_its_destination() -> None:
    async def scenario(stage: Stage) -> None:
        async with stage.running():
            stage.transport.outage()
            stage.record(Event("a", {}, event_id="before"))
            await stage.until(lambda: bool(stage.seen(BreakerChanged)))
            await stage.rest(3)
            stage.record(Event("a", {}, event_id="during"))
            [row] = await find_event(stage.store, "during")
            assert row.status == "PENDING"
            assert row.last_error is not None
            assert "outage" in row.last_error
            assert row.next_retry_at is not None
            stage.transport.heal()
            await stage.until(lambda: len(stage.transport.deliveries) == 2, within=FLOWS_WITHIN)

    run_scenario(scenario)
