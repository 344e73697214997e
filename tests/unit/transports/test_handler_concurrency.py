"""Results of handlers are returned one by one, and handlers that never await share a task."""

import asyncio
import threading
from contextlib import aclosing
from contextvars import ContextVar
from typing import Any

import pytest

from pillarbox import Event, Handlers, Outbox, Relay
from pillarbox.core.errors import UnavailableError
from pillarbox.core.transport import SendResult, StreamingTransport
from pillarbox.stores.memory import MemoryStore
from pillarbox.testing.conformance.transports import outgoing

EVENTS = 400


async def test_each_result_is_returned_as_soon_as_its_call_ends() -> None:
    handlers, go = Handlers(), asyncio.Event()
    assert isinstance(handlers, StreamingTransport)

    @handlers.on("t", name="slow")
    async def slow(event: Any, context: Any) -> None:
        await go.wait()

    @handlers.on("t", name="sync")
    def sync(event: Any, context: Any) -> None:
        raise UnavailableError("not now")

    batch = [outgoing(name, handlers.to(name)) for name in ("slow", "sync", "missing")]
    async with aclosing(handlers.stream(batch)) as results:
        others: list[tuple[int, SendResult]] = []
        while len(others) < 2:
            others += await anext(results)
        assert {position for position, _ in others} == {1, 2}
        assert all(result is not None for _, result in others)
        go.set()
        assert await anext(results) == [(0, None)]
        assert [result async for result in results] == []
    await handlers.aclose()


async def test_calls_are_cancelled_with_their_caller() -> None:
    handlers, ended = Handlers(), asyncio.Event()

    @handlers.on("t", name="slow")
    async def slow(event: Any, context: Any) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    @handlers.on("t", name="quick")
    async def quick(event: Any, context: Any) -> None: ...

    async with aclosing(handlers.stream([outgoing(name, handlers.to(name)) for name in ("slow", "quick")])) as results:
        assert await anext(results) == [(1, None)]
    assert ended.is_set()
    await handlers.aclose()


@pytest.mark.parametrize("waits", [False, True])
async def test_only_a_call_that_waits_needs_its_own_task(waits: bool) -> None:
    store, handlers = MemoryStore(), Handlers()
    handled: list[str] = []
    made: list[str] = []

    @handlers.on("t", name="h")
    async def handle(event: Any, context: Any) -> None:
        if waits:
            await asyncio.sleep(0)
        handled.append(event.event_id)

    def make(loop: asyncio.AbstractEventLoop, work: Any, **more: Any) -> asyncio.Task[Any]:
        made.append(getattr(work, "__qualname__", ""))
        return asyncio.Task(work, loop=loop, **more)

    with store.transaction() as transaction:
        Outbox().record(transaction, *(Event("t", {}) for _ in range(EVENTS)))
    relay = Relay(store=store, transports={"handlers": handlers})
    asyncio.get_running_loop().set_task_factory(make)
    await relay.run_until_empty()
    asyncio.get_running_loop().set_task_factory(None)
    assert len(handled) == EVENTS
    calling = made.count("Calls._run")
    assert calling == EVENTS if waits else 0 < calling < EVENTS / 4


async def test_a_waiting_call_keeps_its_task_and_context() -> None:
    handlers, who = Handlers(), ContextVar("who", default="unset")
    seen: list[str] = []

    @handlers.on("t", name="h")
    async def handle(event: Any, context: Any) -> None:
        assert who.get() == "unset"
        who.set(event.event_id)
        if event.event_id != "first":
            task = asyncio.current_task()
            async with asyncio.timeout(60):
                await asyncio.sleep(0)
            assert asyncio.current_task() is task
        seen.append(who.get())

    assert await handlers.send([outgoing(one, handlers.to("h")) for one in ("first", "a", "b")]) == [None] * 3
    assert sorted(seen) == ["a", "b", "first"]


async def test_a_handler_that_cancels_its_task_does_not_affect_the_others() -> None:
    handlers = Handlers()

    @handlers.on("t", name="h")
    async def handle(event: Any, context: Any) -> None:
        task = asyncio.current_task()
        assert task is not None
        if event.event_id == "first":
            task.cancel()
        else:
            assert not task.cancelling()
            await asyncio.sleep(0)

    assert await handlers.send([outgoing(one, handlers.to("h")) for one in ("first", "a", "b")]) == [None] * 3


async def test_without_a_thread_only_sync_handlers_are_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    handlers, handled = Handlers(), list[str]()

    @handlers.on("t", name="sync")
    def sync(event: Any, context: Any) -> None:
        handled.append(event.event_id)

    @handlers.on("t", name="quick")
    async def quick(event: Any, context: Any) -> None: ...

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as at_the_limit:
        at_the_limit.setattr(threading.Thread, "start", refuse)
        failed, passed = await handlers.send([outgoing(name, handlers.to(name)) for name in ("sync", "quick")])
    assert isinstance(failed, UnavailableError)
    assert passed is None
    assert await handlers.send([outgoing("later", handlers.to("sync"))]) == [None]
    assert handled == ["later"]
    await handlers.aclose()
