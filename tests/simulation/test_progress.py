"""A relay that is alive and could make progress, but makes none, says so; one that has a reason to wait does not."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pillarbox import Event
from pillarbox.core.errors import PermanentError, RowsRefusedError, StoreUnavailableError
from pillarbox.core.observations import (
    BatchSettled,
    BreakerChanged,
    RelayStalled,
    RelayStallEnded,
    Sending,
    StoreFailed,
)
from pillarbox.core.store import EVERYWHERE, Ledger
from pillarbox.core.transport import Pace
from pillarbox.ops.doctor import symptoms
from pillarbox.ops.monitor.checks import ready
from pillarbox.ops.monitor.snapshot import StoreSnapshot
from pillarbox.ops.settings import Settings
from pillarbox.relay.relay import Relay
from pillarbox.relay.routing import Destination, Route
from pillarbox.relay.send import Sender
from pillarbox.stores.memory import MemoryStore
from pillarbox.telemetry.logs import RelayLog
from pillarbox.telemetry.prometheus import RelayMetrics
from pillarbox.testing.simulation import Simulation, simulate
from pillarbox.transports.memory import MemoryAddress, MemoryTransport
from tests.simulation.stage import Stage, ids
from tests.unit.telemetry.exposed import value

BOUND = 10.0 + 15.0 + 0.1
"""The lease of the stage, the stated 15 seconds, and its poll interval."""
SOON = 5.0
LONG = 4 * BOUND

Fault = Callable[[Stage, asyncio.Event], None]


def told(story: Callable[[Stage], Awaitable[None]]) -> None:
    async def staged(simulation: Simulation) -> None:
        await story(Stage(simulation))

    for seed in range(2):
        simulate(staged, seed=seed)


def faulty(of: Any, verb: str, over: asyncio.Event, error: Exception | None = None) -> None:
    """Until `over` is set, the verb of a store raises `error`, or does not return."""
    works = getattr(of, verb)

    async def fails(*arguments: Any, **options: Any) -> Any:
        if not over.is_set():
            if error is not None:
                raise error
            await over.wait()
        return await works(*arguments, **options)

    setattr(of, verb, fails)


def fetch_hangs(stage: Stage, over: asyncio.Event) -> None:
    faulty(stage.store.messages, "read", over)


def fetch_fails(stage: Stage, over: asyncio.Event) -> None:
    faulty(stage.store.messages, "read", over, StoreUnavailableError("statement timeout"))


def settle_hangs(stage: Stage, over: asyncio.Event) -> None:
    faulty(stage.store.writes, "settle", over)


def settle_fails(stage: Stage, over: asyncio.Event) -> None:
    faulty(stage.store.writes, "settle", over, StoreUnavailableError("disk full"))


def take_hangs(stage: Stage, over: asyncio.Event) -> None:
    faulty(stage.store.lanes, "take", over)


def take_fails(stage: Stage, over: asyncio.Event) -> None:
    faulty(stage.store.lanes, "take", over, StoreUnavailableError("permission denied"))


def requests_fail(stage: Stage, over: asyncio.Event) -> None:
    faulty(stage.store.writes, "carry_out", over, StoreUnavailableError("permission denied"))


def with_ledger(stage: Stage) -> Ledger:
    stage.store = MemoryStore(lanes=8, clock=stage.simulation.clock, ledger=True)
    assert stage.store.ledger is not None
    return stage.store.ledger


def ledger_hangs(stage: Stage, over: asyncio.Event) -> None:
    faulty(with_ledger(stage), "begin", over)


def ledger_fails(stage: Stage, over: asyncio.Event) -> None:
    faulty(with_ledger(stage), "begin", over, StoreUnavailableError("disk full"))


@pytest.mark.parametrize(
    ("stage_name", "fault"),
    [
        ("fetch", fetch_hangs),
        ("fetch", fetch_fails),
        ("settle", settle_hangs),
        ("settle", settle_fails),
        ("tend", take_hangs),
        ("tend", take_fails),
        ("ledger", ledger_hangs),
        ("ledger", ledger_fails),
    ],
)
def test_a_store_that_renews_the_lease_but_does_not_work_is_a_stall(stage_name: str, fault: Fault) -> None:
    async def story(stage: Stage) -> None:
        over = asyncio.Event()
        fault(stage, over)
        stage.record(Event("a", {}, event_id="1"))
        async with stage.running() as relay:
            await stage.rest(BOUND - 1)
            assert (stage.seen(RelayStalled), relay.stalled) == ([], "")
            await stage.until(lambda: bool(stage.seen(RelayStalled)), within=SOON)
            [stalled] = stage.seen(RelayStalled)
            assert (stalled.relay, stalled.stage, stalled.reason) == (relay.id, stage_name, relay.stalled)
            assert BOUND < stalled.seconds < BOUND + SOON
            await stage.rest(SOON)
            assert len(stage.seen(RelayStalled)) == 1, "it is told once"
            over.set()
            await stage.until(lambda: not relay.stalled, within=SOON)
            [ended] = stage.seen(RelayStallEnded)
            assert (ended.stage, ended.seconds > stalled.seconds) == (stage_name, True)
            await stage.until(lambda: ids(stage.transport.deliveries) == ["1"], within=SOON)
            await stage.rest(2 * BOUND)
            assert len(stage.seen(RelayStalled)) == 1

    told(story)


def test_requests_that_are_never_carried_out_are_a_stall_although_events_flow() -> None:
    async def story(stage: Stage) -> None:
        over = asyncio.Event()
        requests_fail(stage, over)
        async with stage.running() as relay:
            stage.record(Event("a", {}, event_id="1"))
            await stage.until(lambda: ids(stage.transport.deliveries) == ["1"], within=SOON)
            await stage.until(lambda: bool(relay.stalled), within=BOUND + SOON)
            assert [one.stage for one in stage.seen(RelayStalled)] == ["tend"]
            over.set()
            await stage.until(lambda: not relay.stalled, within=SOON)

    told(story)


def never_woken(monkeypatch: pytest.MonkeyPatch, over: Callable[[], asyncio.Event]) -> None:
    """Senders that hear of nothing new."""
    pause = Sender._pause

    async def asleep(dispatch: Sender) -> None:
        await over().wait()
        await pause(dispatch)

    monkeypatch.setattr(Sender, "_pause", asleep)
    monkeypatch.setattr(Sender, "begin", lambda sender: sender._wakeups.send())


def test_a_free_sender_that_begins_no_send_is_a_stall(monkeypatch: pytest.MonkeyPatch) -> None:
    over = asyncio.Event()
    never_woken(monkeypatch, lambda: over)

    async def story(stage: Stage) -> None:
        nonlocal over
        over = asyncio.Event()
        async with stage.running() as relay:
            await stage.rest(LONG)
            assert stage.seen(RelayStalled) == [], "nothing could be sent"
            stage.record(Event("a", {}, event_id="1"))
            await stage.until(lambda: bool(stage.seen(RelayStalled)), within=BOUND + SOON)
            assert (stage.seen(RelayStalled)[0].stage, "a" in relay.stalled) == ("send", True)
            over.set()
            await stage.until(lambda: ids(stage.transport.deliveries) == ["1"], within=SOON)
            await stage.until(lambda: bool(stage.seen(RelayStallEnded)), within=SOON)
            assert relay.stalled == ""

    told(story)


@pytest.mark.parametrize("gone", ["lost with its lane", "let go of"])
def test_a_sender_that_begins_no_send_because_what_it_had_is_gone_is_no_stall(
    monkeypatch: pytest.MonkeyPatch, gone: str
) -> None:
    over = asyncio.Event()
    never_woken(monkeypatch, lambda: over)

    async def story(stage: Stage) -> None:
        nonlocal over
        over = asyncio.Event()
        async with stage.running() as relay:
            stage.record(Event("a", {}, event_id="1", key="k"))
            await stage.until(lambda: relay._context.in_flight.has_sendable("a"), within=SOON)
            if gone == "let go of":
                # To be discarded it is let go of, and it never comes again.
                await stage.store.admin.requests.add("discard", [("1", "")])
            else:
                stage.store._tables.take_out(("1", ""))
                await stage.store.lanes.release(relay.id)
            await stage.until(lambda: len(relay._context.in_flight) == 0, within=SOON)
            await stage.rest(LONG)
            assert stage.seen(RelayStalled) == []
            over.set()

    told(story)


def test_a_sender_of_one_transport_that_stands_still_is_told_while_another_sends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    collect = Sender._collect

    async def story(stage: Stage) -> None:
        still = MemoryTransport(clock=stage.simulation.clock)

        def one_collects(dispatch: Sender, transport: Any, sends: Any, **ways: Any) -> Any:
            return [] if transport is still else collect(dispatch, transport, sends, **ways)

        monkeypatch.setattr(Sender, "_collect", one_collects)
        options: dict[str, Any] = {
            "transports": {"memory": stage.transport, "still": still},
            "destinations": {
                "busy": MemoryAddress(name="busy", transport="memory"),
                "idle": MemoryAddress(name="idle", transport="still"),
            },
            "routes": [Route(event_type="idle", to=["idle"]), Route(to=["busy"])],
        }
        async with stage.running(**options):
            stage.record(Event("idle", {}, event_id="idle"))
            for number in range(int(BOUND + SOON)):
                stage.record(Event("busy", {}, event_id=str(number)))
                await stage.rest(1)
            assert len(stage.transport.deliveries) > BOUND
            assert [one.stage for one in stage.seen(RelayStalled)] == ["send"]

    told(story)


def test_a_sender_that_is_slow_but_sends_is_not_stalled(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(stage: Stage) -> None:
        async def slowly(dispatch: Sender) -> None:
            await stage.rest(3)

        def only_after_a_pause(dispatch: Sender, transport: Any, sends: Any, *, ended: int = 0) -> Any:
            return [] if ended else collect(dispatch, transport, sends)

        collect = Sender._collect
        monkeypatch.setattr(Sender, "_pause", slowly)
        monkeypatch.setattr(Sender, "_collect", only_after_a_pause)
        transport = MemoryTransport(clock=stage.simulation.clock, pace=Pace(batch_size=1, concurrency=1))
        stage.record(*(Event("a", {}, event_id=str(number)) for number in range(100)))
        async with waiting(stage, transports={"memory": transport}):
            pass
        assert 10 < len(transport.deliveries) < 100

    told(story)


def test_a_decision_whose_row_is_refused_is_a_stall_although_others_are_written() -> None:
    async def story(stage: Stage) -> None:
        settle = stage.store.writes.settle

        async def refusing(epochs: Any, verdicts: Any) -> Any:
            written = await settle(epochs, [one for one in verdicts if one.message.event_id != "refused"])
            if places := [one.message.position for one in verdicts if one.message.event_id == "refused"]:
                # As stores do: once all others are written.
                raise RowsRefusedError("a trigger says no", positions=places)
            return written

        stage.store.writes.settle = refusing  # type: ignore[method-assign, assignment]
        async with stage.running():
            stage.record(Event("a", {}, event_id="refused"), Event("a", {}, event_id="beside"))
            for number in range(int(BOUND + SOON)):
                stage.record(Event("a", {}, event_id=str(number)))
                await stage.rest(1)
            assert [one.stage for one in stage.seen(RelayStalled)] == ["settle"]
            assert (await stage.store.admin.inspection.overview()).backlog == 1
            assert sum(one.delivered for one in stage.seen(BatchSettled)) == len(stage.transport.deliveries) - 1

    told(story)


@asynccontextmanager
async def waiting(stage: Stage, **options: Any) -> AsyncIterator[Relay]:
    """A relay that has every reason to wait, for long: it never tells of a stall."""
    async with stage.running(**options) as relay:
        yield relay
        await stage.rest(LONG)
        assert (stage.seen(RelayStalled), relay.stalled) == ([], "")


async def idle(stage: Stage) -> None:
    async with waiting(stage):
        stage.record(Event("a", {}, event_id="1"))


async def paused(stage: Stage) -> None:
    await stage.store.admin.requests.override(EVERYWHERE, paused=True, by="ann")
    async with waiting(stage):
        stage.record(Event("a", {}, event_id="1"))
        await stage.rest(1)


async def rate_limited(stage: Stage) -> None:
    places = {"slow": Destination(MemoryTransport.to("slow"), rate_limit="1/m")}
    async with waiting(stage, destinations=places, routes=[Route(to=["slow"])]):
        stage.record(*(Event("a", {}, event_id=str(number)) for number in range(50)))
    assert 1 <= len(stage.transport.deliveries) < 50, "it was limited"


async def rate_limited_in_flight(stage: Stage) -> None:
    """The limit is set when many are fetched already: they wait for it in flight."""
    transport = MemoryTransport(clock=stage.simulation.clock, latency=1, pace=Pace(batch_size=1, concurrency=1))
    async with waiting(stage, transports={"memory": transport}):
        stage.record(*(Event("a", {}, event_id=str(number)) for number in range(50)))
        await stage.until(lambda: len(transport.deliveries) == 3)
        await stage.store.admin.requests.override("a", rate_limit=1 / 3600, by="ann")
    assert len(transport.deliveries) < 10, "it was limited"


async def unavailable(stage: Stage) -> None:
    stage.transport.outage()
    async with waiting(stage):
        stage.record(Event("a", {}, event_id="1"))
    assert stage.seen(Sending) or stage.transport.deliveries == []


async def blocked_key(stage: Stage) -> None:
    stage.transport.fail_next(PermanentError("no"))
    async with waiting(stage, tuned={"on_exhausted": "block"}):
        stage.record(*(Event("a", {}, event_id=str(number), key="k") for number in range(5)))
    assert stage.transport.deliveries == []


async def long_handlers(stage: Stage) -> None:
    """One send at a time, and the first takes for ever: others wait, of its key and of other keys."""
    pace = Pace(batch_size=1, concurrency=1, bounded=True)
    transport = MemoryTransport(clock=stage.simulation.clock, latency=4 * LONG, pace=pace)
    async with waiting(stage, transports={"memory": transport}, tuned={"drain_timeout": "1s"}):
        stage.record(*(Event("a", {}, event_id=f"{key}{number}", key=key) for key in "kl" for number in range(3)))
    assert len(stage.seen(Sending)) == 1


async def long_calls_of_one_handler(stage: Stage) -> None:
    """They occupy its whole share of the threads, and others would still find one."""
    pace = Pace(batch_size=1, concurrency=8, bounded=True, window=lambda address, sending: 2 - sending.get(address, 0))
    transport = MemoryTransport(clock=stage.simulation.clock, latency=4 * LONG, pace=pace)
    async with waiting(stage, transports={"memory": transport}, tuned={"drain_timeout": "1s"}):
        stage.record(*(Event("a", {}, event_id=str(number)) for number in range(5)))
    assert sum(len(one.messages) for one in stage.seen(Sending)) == 2
    assert stage.seen(BreakerChanged) == [], "it waits for calls of its own"


async def long_sends_beside_an_idle_transport(stage: Stage) -> None:
    """The transport that is free has nothing to send."""
    pace = Pace(batch_size=1, concurrency=1, bounded=True)
    slow = MemoryTransport(clock=stage.simulation.clock, latency=4 * LONG, pace=pace)
    options: dict[str, Any] = {
        "transports": {"idle": stage.transport, "slow": slow},
        "destinations": {"slow": MemoryAddress(name="slow", transport="slow")},
        "routes": [Route(to=["slow"])],
        "tuned": {"drain_timeout": "1s"},
    }
    async with waiting(stage, **options):
        stage.record(*(Event("a", {}, event_id=str(number)) for number in range(3)))
    assert len(stage.seen(Sending)) == 1


async def one_long_handler(stage: Stage) -> None:
    """Senders are free, and what waits is behind the one that runs."""
    pace = Pace(batch_size=1, concurrency=10, bounded=True)
    transport = MemoryTransport(clock=stage.simulation.clock, latency=4 * LONG, pace=pace)
    async with waiting(stage, transports={"memory": transport}, tuned={"drain_timeout": "1s"}):
        stage.record(*(Event("a", {}, event_id=str(number), key="k") for number in range(3)))
    assert len(stage.seen(Sending)) == 1


async def no_store(stage: Stage) -> None:
    """Everything fails, the renewal of the lease too; then it is back."""
    over = asyncio.Event()
    over.set()
    for of, verbs in (
        (stage.store.messages, ("read", "orphaned_queues", "parked_destinations")),
        (stage.store.writes, ("settle", "carry_out")),
        (stage.store.lanes, ("renew", "take", "join", "release")),
        (stage.store.destinations, ("overrides",)),
    ):
        for verb in verbs:
            faulty(of, verb, over, StoreUnavailableError("away"))
    async with waiting(stage):
        await stage.rest(1)
        stage.transport.latch.close()
        stage.record(Event("a", {}, event_id="1"))
        await stage.until(lambda: stage.transport.latch.held == 1, within=SOON)
        over.clear()
        stage.transport.latch.open()
        await stage.rest(LONG)
        assert stage.seen(StoreFailed)
        over.set()
    assert "1" in ids(stage.transport.deliveries)


async def ledger_failed(stage: Stage) -> None:
    """The ledger failed, and then the event was discarded."""
    over = asyncio.Event()
    ledger_fails(stage, over)
    async with waiting(stage):
        stage.record(Event("a", {}, event_id="1"))
        await stage.until(lambda: bool(stage.seen(StoreFailed)), within=SOON)
        await stage.store.admin.requests.add("discard", [("1", "")])
        await stage.until(lambda: not stage.store._tables.waiting, within=SOON)


async def draining(stage: Stage) -> None:
    """A relay that stops waits for its last decision, as long as it may."""
    over = asyncio.Event()
    settle_fails(stage, over)
    relay = stage.relay(tuned={"drain_timeout": LONG})
    async with relay:
        stage.record(Event("a", {}, event_id="1"))
        await stage.until(lambda: ids(stage.transport.deliveries) == ["1"], within=SOON)
        relay.stop()
        await stage.rest(2 * BOUND)
        assert (stage.seen(RelayStalled), relay.stalled) == ([], "")
        over.set()


@pytest.mark.parametrize(
    "story",
    [
        idle,
        paused,
        rate_limited,
        rate_limited_in_flight,
        unavailable,
        blocked_key,
        long_handlers,
        long_calls_of_one_handler,
        long_sends_beside_an_idle_transport,
        one_long_handler,
        no_store,
        ledger_failed,
        draining,
    ],
)
def test_a_relay_with_a_reason_to_wait_is_not_stalled(story: Callable[[Stage], Awaitable[None]]) -> None:
    told(story)


@pytest.mark.parametrize("fault", [settle_fails, take_fails, ledger_hangs])
def test_a_stall_shows_in_the_log_the_metrics_the_readiness_and_the_doctor(
    caplog: pytest.LogCaptureFixture, fault: Fault
) -> None:
    async def doctor(stage: Stage) -> str:
        [check] = [one for one in symptoms.checks(Settings.load(None, {}), stage.store) if "relays" in one.name]
        return (await check.ask()).result

    async def readiness(stage: Stage, relay: Relay) -> bool:
        seen = StoreSnapshot(overview=await stage.store.admin.inspection.overview())
        return ready(seen, relay.waits_for, stalled=relay.stalled).yes

    async def story(stage: Stage) -> None:
        caplog.clear()
        over, metrics = asyncio.Event(), RelayMetrics()
        fault(stage, over)
        stage.record(Event("a", {}, event_id="1"))
        async with stage.running(observers=[stage.observed.append, metrics, RelayLog()]) as relay:
            for stalled in (False, True, False):
                if stalled:
                    await stage.until(lambda: bool(relay.stalled), within=BOUND + SOON)
                elif stage.seen(RelayStalled):
                    over.set()
                await stage.rest(4)
                assert value(metrics.registry, "outbox_relay_stalled") == float(stalled)
                assert await readiness(stage, relay) is not stalled
                assert await doctor(stage) == ("fail" if stalled else "pass")
        [wrong, right] = [one for one in caplog.records if "stalled" in one.message]
        assert (wrong.levelname, right.levelname) == ("ERROR", "INFO")

    with caplog.at_level(logging.INFO, logger="pillarbox.relay"):
        told(story)
