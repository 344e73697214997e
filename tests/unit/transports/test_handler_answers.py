"""Answers of handlers come one by one, and a relay needs one task for a call, and no more."""

import asyncio
from contextlib import aclosing
from typing import Any

from pillarbox import Event, Handlers, Outbox, Relay
from pillarbox.core.errors import Unavailable
from pillarbox.core.transport import AnswersApart
from pillarbox.stores.memory import MemoryStore
from pillarbox.testing.conformance.transports import outgoing

EVENTS = 400


async def test_each_answer_comes_as_soon_as_its_call_returned() -> None:
    handlers, go = Handlers(), asyncio.Event()
    assert isinstance(handlers, AnswersApart)

    @handlers.on("t", name="slow")
    async def slow(event: Any, context: Any) -> None:
        await go.wait()

    @handlers.on("t", name="sync")
    def sync(event: Any, context: Any) -> None:
        raise Unavailable("not now")

    lot = [outgoing(name, handlers.to(name)) for name in ("slow", "sync", "nobody")]
    async with aclosing(handlers.answers(lot)) as answers:
        first, second = await anext(answers), await anext(answers)
        assert {first[0], second[0]} == {1, 2}
        assert all(result is not None for _, result in (first, second))
        go.set()
        assert await anext(answers) == (0, None)
        assert [answer async for answer in answers] == []
    await handlers.aclose()


async def test_calls_end_with_whoever_waited_for_their_answers() -> None:
    handlers, ended = Handlers(), asyncio.Event()

    @handlers.on("t", name="slow")
    async def slow(event: Any, context: Any) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with aclosing(
        handlers.answers([outgoing(name, handlers.to(name)) for name in ("slow", "nobody")])
    ) as answers:
        assert (await anext(answers))[0] == 1
    assert ended.is_set()
    await handlers.aclose()


async def test_a_relay_makes_one_task_for_a_call_and_few_besides() -> None:
    store, handlers = MemoryStore(), Handlers()
    handled: list[str] = []
    made: list[str] = []

    @handlers.on("t", name="h")
    async def handle(event: Any, context: Any) -> None:
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
    sending = [name for name in made if name.startswith(("Handlers.", "Dispatch."))]
    assert EVENTS < len(sending) < 1.5 * EVENTS
