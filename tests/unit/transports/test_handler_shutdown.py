"""Cancelling and closing while handlers run, and isolation between events."""

import asyncio
import threading
from contextvars import ContextVar
from typing import Any

import pytest

from pillarbox.core.errors import UnavailableError
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.testing.waiting import eventually
from pillarbox.transports.handlers import Handlers
from tests.unit.transports.batches import call

who: ContextVar[str] = ContextVar("who", default="unset")


class Waiting:
    """A handler that signals its start, waits, and records how it ended."""

    event_type = "*"
    name = "h"

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.ended: list[str] = []

    async def handle(self, event: Any, context: Any) -> None:
        self.began.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            self.ended.append(event.event_id)


async def test_a_cancelled_send_cancels_its_async_handlers_first() -> None:
    handlers, handler = Handlers(), Waiting()
    handlers.add(handler)
    sending = asyncio.create_task(handlers.send([outgoing(one, handlers.to("h")) for one in "ab"]))
    await handler.began.wait()
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    assert sorted(handler.ended) == ["a", "b"]


async def test_a_cancelled_send_drops_queued_calls_and_does_not_wait_for_threads() -> None:
    handlers, let_go, calls = Handlers(workers=1), threading.Event(), []

    @handlers.on("*", name="h")
    def block(event: Any, context: Any) -> None:
        calls.append(event.event_id)
        let_go.wait()

    async def begun() -> bool:
        return bool(calls)

    sending = asyncio.create_task(handlers.send([outgoing(one, handlers.to("h")) for one in "abc"]))
    await eventually(begun)
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    let_go.set()
    assert await handlers.send([outgoing("later", handlers.to("h"))]) == [None]
    assert calls == ["a", "later"]


async def test_closing_reports_running_calls_and_cancels_async_ones() -> None:
    handlers, handler, let_go, blocked = Handlers(), Waiting(), threading.Event(), threading.Event()
    handlers.add(handler)

    @handlers.on("*", name="blocking")
    def block(event: Any, context: Any) -> None:
        blocked.set()
        let_go.wait()

    batch = [outgoing("a", handlers.to("h")), outgoing("b", handlers.to("blocking"))]
    sending = asyncio.create_task(handlers.send(batch))
    await handler.began.wait()
    await asyncio.to_thread(blocked.wait)
    await handlers.aclose()
    results = await sending
    let_go.set()
    assert [type(result) for result in results] == [UnavailableError, UnavailableError]
    assert handler.ended == ["a"]


async def test_threads_end_after_closing() -> None:
    handlers = Handlers()
    threads: list[threading.Thread] = []
    handlers.on("*", name="h")(lambda *_: threads.append(threading.current_thread()))
    await handlers.send([outgoing(f"e{n}", handlers.to("h")) for n in range(8)])
    assert all(thread.daemon for thread in threads)
    await handlers.aclose()

    async def all_gone() -> bool:
        return not any(thread.is_alive() for thread in threads)

    await eventually(all_gone)


@pytest.mark.parametrize("is_async", [True, False], ids=["async", "sync"])
async def test_context_variables_come_from_the_sender_and_do_not_leak(is_async: bool) -> None:
    handlers = Handlers(workers=1)
    seen: list[str] = []

    def note(event: Any, context: Any) -> None:
        seen.append(who.get())
        who.set(event.event_id)

    async def anote(event: Any, context: Any) -> None:
        note(event, context)

    handlers.on("*", name="h")(anote if is_async else note)
    who.set("the relay")
    await handlers.send([outgoing(one, handlers.to("h")) for one in "ab"])
    await call(handlers)
    assert seen == ["the relay"] * 3
    assert who.get() == "the relay"


async def test_a_handler_can_send_events_to_other_handlers() -> None:
    handlers = Handlers()
    handlers.on("*", name="inner")(lambda *_: None)

    @handlers.on("*", name="outer")
    async def outer(event: Any, context: Any) -> None:
        assert await call(handlers, "inner") is None

    assert await call(handlers, "outer") is None
