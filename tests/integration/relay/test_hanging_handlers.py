"""Handlers that hang delay only their own events, are reported, and do not block the stop of a relay."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from pillarbox import Event, Handlers, Outbox, Relay, RelayConfig
from pillarbox.core.observations import BreakerChanged, LanesReleased, Observation, SendOverdue
from pillarbox.retry_policies import FixedDelay
from pillarbox.stores.memory import MemoryStore
from pillarbox.testing.waiting import eventually

CONFIG = RelayConfig(
    batch_size=50,
    max_in_flight_batches=2,
    poll_interval="20ms",
    heartbeat_interval="100ms",
    lease="10s",
    send_timeout="2s",
)
BOUND = 120.0
KEYS = 20
GOOD = ("sync", "async")


def calls_of(handlers: Handlers, handler: str) -> int:
    """The number of running calls of a handler."""
    return sum(call.handler.name == handler for call in handlers._running.copy())


@dataclass
class Scene:
    """A store, handlers that hang until `go`, and the observations."""

    store: MemoryStore = field(default_factory=lambda: MemoryStore(lanes=8))
    go: threading.Event = field(default_factory=threading.Event)
    called: list[str] = field(default_factory=list)
    """The events of hanging calls."""
    handled: dict[str, list[tuple[str | None, str]]] = field(default_factory=dict)
    observed: list[Observation] = field(default_factory=list)

    def handlers(self, *, timeout: str = "500ms", workers: int = 4) -> Handlers:
        return Handlers(timeout=timeout, workers=workers)

    def good(self, handlers: Handlers, name: str, *, is_async: bool = False) -> None:
        """Add a handler that returns at once."""
        done = self.handled.setdefault(name, [])

        async def ahandle(event: Any, context: Any) -> None:
            done.append((event.key, event.event_id))

        handlers.on(name, name=name)(ahandle if is_async else lambda e, _: done.append((e.key, e.event_id)))

    def hanging(self, handlers: Handlers, name: str) -> None:
        """Add a sync handler that hangs until `go`."""
        done = self.handled.setdefault(name, [])

        @handlers.on(name, name=name)
        def hang(event: Any, context: Any) -> None:
            self.called.append(event.event_id)
            self.go.wait()
            done.append((event.key, event.event_id))

    def stubborn(self, handlers: Handlers, name: str) -> None:
        """Add an async handler that ignores cancellation until `go`."""
        done = self.handled.setdefault(name, [])

        @handlers.on(name, name=name)
        async def hang(event: Any, context: Any) -> None:
            self.called.append(event.event_id)
            while not self.go.is_set():
                with suppress(asyncio.CancelledError):
                    await eventually(self.go.is_set, within=BOUND)
            done.append((event.key, event.event_id))

    def record(self, event_type: str, count: int) -> None:
        with self.store.transaction() as transaction:
            events = (Event(event_type, {}, event_id=f"{event_type} {n:05}", key=f"{n % KEYS}") for n in range(count))
            Outbox().record(transaction, *events)

    @asynccontextmanager
    async def running(self, handlers: Handlers, **tuned: Any) -> AsyncIterator[Relay]:
        options = {name: getattr(CONFIG, name) for name in CONFIG.__slots__} | {"drain_timeout": "200ms"} | tuned
        relay = Relay(
            store=self.store,
            transports={"handlers": handlers},
            retry=FixedDelay(delay="10ms", max_attempts="unlimited"),
            config=RelayConfig(**options),
            observers=[self.observed.append],
        )
        try:
            async with asyncio.timeout(BOUND), relay:
                yield relay
        except BaseException:
            self.go.set()  # otherwise hanging handlers would block a failing test
            raise
        await handlers.aclose()

    async def until(self, fact: Callable[[], bool]) -> None:
        async def holds() -> bool:
            return fact()

        await eventually(holds, within=BOUND)

    def seen(self, kind: type[Observation]) -> list[Any]:
        return [one for one in self.observed if isinstance(one, kind)]

    def assert_in_order(self, name: str) -> None:
        """Each key was handled in order, apart from repeated calls after a timeout."""
        for key in {key for key, _ in self.handled[name]}:
            firsts = list(dict.fromkeys(event_id for k, event_id in self.handled[name] if k == key))
            assert firsts == sorted(firsts)


@pytest.fixture
def scene() -> Iterator[Scene]:
    scene = Scene()
    yield scene
    scene.go.set()


@pytest.mark.parametrize("kind", ["hanging", "stubborn"])
async def test_a_handler_that_hangs_delays_only_its_own_events(scene: Scene, kind: str) -> None:
    handlers = scene.handlers()
    getattr(scene, kind)(handlers, "bad")
    scene.good(handlers, "sync")
    scene.good(handlers, "async", is_async=True)
    # More than fit in flight, and all of them before the others.
    scene.record("bad", 300)
    scene.record("sync", 200)
    scene.record("async", 200)
    async with scene.running(handlers):
        await scene.until(lambda: len(scene.handled["sync"]) >= 200 and len(scene.handled["async"]) >= 200)
        assert scene.handled["bad"] == []
        await scene.until(lambda: bool(scene.seen(SendOverdue)))
        await scene.until(lambda: any(one.state == "open" for one in scene.seen(BreakerChanged)))
        assert {one.destination for one in scene.seen(BreakerChanged) if one.state == "open"} == {"bad"}
        assert {one.destination for one in scene.seen(SendOverdue)} == {"bad"}
        scene.go.set()
        await scene.until(lambda: len({event_id for _, event_id in scene.handled["bad"]}) == 300)
    for name in ("bad", "sync", "async"):
        scene.assert_in_order(name)


@pytest.mark.parametrize("kind", ["hanging", "stubborn"])
async def test_the_result_of_a_call_does_not_wait_for_others(scene: Scene, kind: str) -> None:
    handlers = scene.handlers(timeout="forever")
    getattr(scene, kind)(handlers, "bad")
    scene.good(handlers, "sync")
    scene.good(handlers, "async", is_async=True)
    with scene.store.transaction() as transaction:
        for n in range(10):
            Outbox().record(transaction, Event("bad", {}, key=f"{n}"))
            # Of one key: the next call starts after the previous one returned.
            Outbox().record(transaction, *(Event(name, {}, event_id=f"{name} {n}", key="k") for name in GOOD))
    async with scene.running(handlers):
        await scene.until(lambda: all(len(scene.handled[name]) == 10 for name in GOOD))
        assert scene.handled["bad"] == []
        scene.go.set()


@pytest.mark.parametrize("kind", ["hanging", "stubborn"])
async def test_a_call_that_overruns_keeps_its_key_until_it_returns(scene: Scene, kind: str) -> None:
    handlers = scene.handlers()
    getattr(scene, kind)(handlers, "bad")
    with scene.store.transaction() as transaction:
        Outbox().record(transaction, *(Event("bad", {}, event_id=f"{n}", key="one") for n in range(5)))
    async with scene.running(handlers):
        await scene.until(lambda: bool(scene.seen(SendOverdue)))
        # It has timed out, and it is still the only call.
        assert scene.called == ["0"]
        assert scene.handled["bad"] == []
        scene.go.set()
        await scene.until(lambda: len({event_id for _, event_id in scene.handled["bad"]}) == 5)
    scene.assert_in_order("bad")


@pytest.mark.parametrize("kind", ["hanging", "stubborn"])
async def test_events_waiting_for_a_hanging_call_use_no_probe(scene: Scene, kind: str) -> None:
    scene.store = MemoryStore(lanes=1)  # so that the others are first in every fetch
    handlers = scene.handlers()
    getattr(scene, kind)(handlers, "bad")
    with scene.store.transaction() as transaction:
        Outbox().record(transaction, *(Event("bad", {}, event_id=f"{n}", key="one") for n in range(5)))
    async with scene.running(handlers):
        await scene.until(lambda: any(one.state == "open" for one in scene.seen(BreakerChanged)))
        with scene.store.transaction() as transaction:
            Outbox().record(transaction, Event("bad", {}, event_id="other", key="two"))
        await scene.until(lambda: "other" in scene.called)
        assert [one for one in scene.called if one != "other"] == ["0"]
        scene.go.set()
        await scene.until(lambda: len({event_id for _, event_id in scene.handled["bad"]}) == 6)
    scene.assert_in_order("bad")


async def test_hanging_handlers_leave_a_thread_for_every_other(scene: Scene) -> None:
    handlers = scene.handlers(workers=4)
    for n in range(20):
        scene.hanging(handlers, f"bad {n}")
        scene.record(f"bad {n}", 5)
    scene.good(handlers, "good")
    scene.record("good", 100)
    async with scene.running(handlers):
        await scene.until(lambda: len(scene.handled["good"]) >= 100)
        scene.go.set()


@pytest.mark.parametrize("kind", ["hanging", "stubborn"])
async def test_a_relay_stops_in_time_with_hanging_handlers(scene: Scene, kind: str) -> None:
    handlers = scene.handlers(timeout="forever")
    getattr(scene, kind)(handlers, "bad")
    scene.record("bad", 50)
    async with scene.running(handlers):
        await scene.until(lambda: calls_of(handlers, "bad") > 0)
    assert scene.handled["bad"] == []
    scene.go.set()
    await scene.until(lambda: calls_of(handlers, "bad") == 0)


async def test_calls_that_still_hang_are_reported_and_counted(scene: Scene) -> None:
    handlers = scene.handlers(timeout="forever", workers=2)
    scene.hanging(handlers, "bad")
    scene.record("bad", 10)
    relay = Relay(
        store=scene.store,
        transports={"handlers": handlers},
        config=RelayConfig(poll_interval="20ms", heartbeat_interval="100ms", drain_timeout="50ms"),
        observers=[scene.observed.append],
    )
    async with asyncio.timeout(BOUND):
        async with relay:
            await scene.until(lambda: calls_of(handlers, "bad") == 2)
        async with relay:
            await scene.until(lambda: any("occupy every thread" in one.error for one in scene.seen(BreakerChanged)))
        assert calls_of(handlers, "bad") == 2
    scene.go.set()
    await handlers.aclose()


async def test_a_relay_without_a_free_thread_releases_its_lanes(scene: Scene) -> None:
    stuck, free = scene.handlers(workers=2), scene.handlers()
    scene.hanging(stuck, "work")
    with scene.store.transaction() as transaction:
        Outbox().record(transaction, *(Event("work", {}, event_id=f"{n:03}") for n in range(200)))
    async with scene.running(stuck):
        await scene.until(lambda: calls_of(stuck, "work") == 2 and bool(scene.seen(SendOverdue)))
        scene.handled["work"].clear()
        scene.good(free, "work")
        async with scene.running(free):
            # All but the hanging ones and those that wait in their lanes.
            await scene.until(lambda: len(scene.seen(LanesReleased)) > 0 and len(scene.handled["work"]) >= 100)
        scene.go.set()
        await scene.until(lambda: len({event_id for _, event_id in scene.handled["work"]}) == 200)
