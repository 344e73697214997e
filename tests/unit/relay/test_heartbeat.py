"""A heartbeat takes a loop for hanging only if it does nothing while the heartbeat itself runs."""

import asyncio
from collections.abc import Callable

import pytest

from pillarbox.core.clock import SystemClock
from pillarbox.core.lane import Renewal
from pillarbox.relay.config import RelayConfig
from pillarbox.relay.liveness import Heartbeat
from pillarbox.stores.memory import MemoryStore
from tests.unit.relay.contexts import relay_context

INTERVAL, STALL_LIMIT, SUSPENDED = 1.0, 60.0, 3600.0
CONFIG = RelayConfig(heartbeat_interval="1s", lease="15s", send_timeout="10s", stall_limit="60s")


class SteppedClock(SystemClock):
    """Time passes only while the heartbeat sleeps."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.on_sleep: Callable[[float], None] = lambda time: None
        """Called with the time before each sleep."""

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        for _ in range(10):
            await asyncio.sleep(0)  # what is due now happens before time passes
        self.on_sleep(self.time)
        self.time += seconds


class Watched:
    """A heartbeat of a relay that joined, and what it finds, with the time."""

    def __init__(self) -> None:
        self.clock = SteppedClock()
        self.store = MemoryStore(lanes=1)
        self.context = relay_context(self.store, config=CONFIG, clock=self.clock)
        self.context.heartbeat.joined = True
        self.began = self.clock.time
        self.findings: list[tuple[str, float]] = []
        self.found = asyncio.Event()

    def tick(self) -> None:
        self.context.heartbeat.ticked = self.clock.time

    async def run(self, on_sleep: Callable[[float], None], *, until: float) -> list[tuple[str, float]]:
        """Let it run until it finds something, or for that many seconds; returns its findings."""

        def sleep(time: float) -> None:
            on_sleep(time - self.began)
            if time - self.began > until:
                self.found.set()

        self.tick()
        self.clock.on_sleep = sleep
        heartbeat = Heartbeat(self.context, self, self.store)
        heartbeat.begin()
        await self.found.wait()
        await heartbeat.end()
        return self.findings

    def add(self, finding: str) -> None:
        self.findings.append((finding, self.clock.time - self.began))
        self.found.set()

    def renewed(self, deadline: float, renewal: Renewal) -> None: ...

    def lease_lost(self, reason: str) -> None:
        # The relay joins again in its next round.
        self.context.heartbeat.joined = True

    def session_lost(self) -> None:
        self.add("session lost")

    def lanes_available(self) -> None: ...

    def loop_stalled(self, reason: str) -> None:
        self.add("stalled")

    def heartbeat_failed(self, error: Exception) -> None:
        raise error


async def test_a_loop_that_does_nothing_for_the_stall_limit_hangs() -> None:
    [(finding, after)] = await Watched().run(lambda time: None, until=10 * STALL_LIMIT)
    assert finding == "stalled"
    assert STALL_LIMIT < after <= STALL_LIMIT + 2 * INTERVAL


@pytest.mark.parametrize("seconds_in_a_statement", [0.0, 5.0, 30.0, STALL_LIMIT - 3 * INTERVAL])
async def test_a_suspended_relay_may_finish_its_round_before_it_is_taken_for_hanging(
    seconds_in_a_statement: float,
) -> None:
    """A statement on a connection that is dead by then fails after its timeout, and only then the loop ticks."""
    watched = Watched()
    resumed = 0.0

    def proceed(time: float) -> None:
        nonlocal resumed
        if not resumed and time > 10:
            watched.clock.time += SUSPENDED
            resumed = time + SUSPENDED
        elif not resumed or time >= resumed + seconds_in_a_statement:
            watched.tick()

    assert await watched.run(proceed, until=SUSPENDED + 10 * STALL_LIMIT) == []
    assert resumed


async def test_a_loop_that_hangs_after_a_suspension_is_found() -> None:
    watched = Watched()
    resumed = 0.0

    def proceed(time: float) -> None:
        nonlocal resumed
        if not resumed and time > 10:
            watched.clock.time += SUSPENDED
            resumed = time + SUSPENDED
        elif not resumed:
            watched.tick()

    [(finding, after)] = await watched.run(proceed, until=SUSPENDED + 10 * STALL_LIMIT)
    assert finding == "stalled"
    assert STALL_LIMIT - 3 * INTERVAL < after - resumed <= STALL_LIMIT + 2 * INTERVAL


async def test_a_loop_that_hangs_is_found_although_the_store_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each renewal takes longer than the interval: that is no suspension."""
    watched = Watched()
    renew = watched.store.lanes.renew

    async def slow(*arguments: object, **named: object) -> Renewal | None:
        await watched.clock.sleep(5 * INTERVAL)
        return await renew(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(watched.store.lanes, "renew", slow)
    [(finding, _)] = await watched.run(lambda time: None, until=100 * STALL_LIMIT)
    assert finding == "stalled"


async def test_the_end_of_the_session_is_noticed_while_the_loop_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched()
    ended = asyncio.Event()
    resumed = 0.0

    def proceed(time: float) -> None:
        nonlocal resumed
        if not resumed and time > 10:
            watched.clock.time += SUSPENDED
            resumed = time + SUSPENDED
            ended.set()
        elif not resumed:
            watched.tick()

    monkeypatch.setattr(watched.store.lanes, "session_ended", ended.wait)
    [(finding, after)] = await watched.run(proceed, until=SUSPENDED + 10 * STALL_LIMIT)
    assert finding == "session lost"
    assert after - resumed <= 2 * INTERVAL
