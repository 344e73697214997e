"""Slow handlers: async ones time out, sync ones are awaited, and neither delays the others."""

import asyncio
import threading
import time
from typing import Any

import pytest

from pillarbox.core.errors import ConfigurationError, RejectedError
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.testing.simulation import Simulation, simulate
from pillarbox.testing.waiting import eventually
from pillarbox.transports.handlers import HandlerAddress, HandlerContext, Handlers, ReceivedEvent
from pillarbox.transports.handlers.calls import Call, Calls
from pillarbox.transports.handlers.registry import handler_of
from tests.servers.waiting import wait_until
from tests.unit.transports.batches import call


def test_an_async_handler_that_times_out_is_cancelled_and_rejected() -> None:
    async def scenario(simulation: Simulation) -> None:
        handlers = Handlers(timeout="30s")
        ended: list[float] = []

        @handlers.on("*", name="h")
        async def slow(event: Any, context: Any) -> None:
            try:
                await asyncio.sleep(3600)
            finally:
                ended.append(simulation.clock.monotonic())

        result = await call(handlers)
        assert type(result) is RejectedError
        assert str(result).startswith("handler h took longer than 30 s")
        assert ended == [30.0]

    simulate(scenario, seed=1)


def test_an_async_handler_that_ignores_cancellation_is_awaited_and_rejected() -> None:
    async def scenario(simulation: Simulation) -> None:
        handlers = Handlers(timeout="30s")

        @handlers.on("*", name="h")
        async def stubborn(event: Any, context: Any) -> None:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                await asyncio.sleep(100)

        assert type(await call(handlers)) is RejectedError
        assert simulation.clock.monotonic() == 130.0

    simulate(scenario, seed=1)


async def test_a_call_that_times_out_in_the_queue_is_not_started() -> None:
    begun: list[str] = []

    async def note(event: ReceivedEvent, context: HandlerContext) -> None:
        begun.append(event.event_id)

    calls, out = Calls(set(), 30.0), outgoing("a", HandlerAddress(name="h"))
    context = HandlerContext(attempt=1, headers={}, epoch=0, destination="h")
    call = calls.open[0] = Call(calls, 0, handler_of(note, ["*"], "h"), ReceivedEvent(out), context)
    calls.begin([call])
    calls.expire()
    [(position, result)] = await calls.next()
    assert (position, type(result)) == (0, RejectedError)
    others = asyncio.all_tasks() - {asyncio.current_task()}
    if others:
        await asyncio.wait(others)
    assert begun == []


def test_forever_means_no_timeout() -> None:
    async def scenario(simulation: Simulation) -> None:
        handlers = Handlers(timeout="forever")

        @handlers.on("*", name="h")
        async def very_slow(event: Any, context: Any) -> None:
            await asyncio.sleep(80_000)

        assert await call(handlers) is None

    simulate(scenario, seed=1)


def test_a_configured_timeout_replaces_the_one_of_the_constructor() -> None:
    async def scenario(simulation: Simulation) -> None:
        handlers = Handlers(timeout="forever", workers=4)
        handlers.configure(timeout="5s")

        @handlers.on("*", name="h")
        async def slow(event: Any, context: Any) -> None:
            await asyncio.sleep(3600)

        assert str(await call(handlers)).startswith("handler h took longer than 5 s")
        handlers.configure(workers=2)
        assert str(await call(handlers)).startswith("handler h took longer than 5 s")

    simulate(scenario, seed=1)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"timeout": 0}, "Handlers.timeout is 0: write a duration above zero"),
        ({"timeout": "never"}, "Handlers.timeout is 'never': write a duration"),
        ({"workers": 0}, "Handlers.workers is 0: write an integer, 1 or more"),
    ],
)
def test_an_invalid_limit_is_an_error(limits: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Handlers(**limits)
    with pytest.raises(ConfigurationError, match=message):
        Handlers().configure(**limits)


def test_a_slow_handler_does_not_affect_others_in_its_batch() -> None:
    async def scenario(simulation: Simulation) -> None:
        handlers = Handlers(timeout="30s")

        @handlers.on("*", name="h")
        async def handle(event: Any, context: Any) -> None:
            await asyncio.sleep(3600 if event.event_id == "slow" else 29)

        results = await handlers.send([outgoing(one, handlers.to("h")) for one in ("a", "slow", "b")])
        assert [type(result) for result in results] == [type(None), RejectedError, type(None)]

    simulate(scenario, seed=1)


async def test_a_timeout_error_of_the_handler_is_an_ordinary_error() -> None:
    handlers = Handlers()

    @handlers.on("*", name="h")
    async def impatient(event: Any, context: Any) -> None:
        async with asyncio.timeout(0):
            await asyncio.Event().wait()

    assert str(await call(handlers)) == "handler h raised TimeoutError"


async def test_a_sync_handler_that_returns_too_late_is_rejected() -> None:
    handlers = Handlers(timeout="10ms")
    late, done = threading.Event(), threading.Event()

    @handlers.on("*", name="h")
    def slow(event: Any, context: Any) -> None:
        began = time.monotonic()  # the timeout of the handler is what the test waits for
        wait_until(lambda: time.monotonic() > began + 0.01, bound=60, what="the handler is too late")
        late.set()
        done.wait()

    sending = asyncio.create_task(call(handlers))
    await eventually(late.is_set)
    assert not sending.done()
    done.set()
    result = await sending
    assert type(result) is RejectedError
    assert "took longer than 0.01 s" in str(result)


async def test_a_slow_handler_does_not_delay_other_sends() -> None:
    handlers = Handlers()
    let_go, blocked = asyncio.Event(), threading.Event()
    handlers.on("*", name="fast")(lambda *_: None)

    @handlers.on("*", name="slow")
    async def slow(event: Any, context: Any) -> None:
        await let_go.wait()

    @handlers.on("*", name="blocking")
    def blocking(event: Any, context: Any) -> None:
        blocked.wait()

    held = [asyncio.create_task(call(handlers, name)) for name in ("slow", "blocking") for _ in range(10)]
    for _ in range(20):
        assert await call(handlers, "fast") is None
    assert not any(task.done() for task in held)
    let_go.set()
    blocked.set()
    assert await asyncio.gather(*held) == [None] * 20


async def test_sync_handlers_run_concurrently_up_to_the_number_of_workers() -> None:
    handlers = Handlers(workers=3)
    lock, let_go = threading.Lock(), threading.Event()
    running: list[str] = []

    @handlers.on("*", name="h")
    def block(event: Any, context: Any) -> None:
        with lock:
            running.append(threading.current_thread().name)
        let_go.wait()

    sending = asyncio.create_task(handlers.send([outgoing(f"e{n}", handlers.to("h")) for n in range(8)]))

    async def all_busy() -> bool:
        return len(running) == 3

    await eventually(all_busy)
    let_go.set()
    assert await sending == [None] * 8
    assert len(set(running)) <= 3
    assert all(name.startswith("pillarbox-handler-") for name in running)
