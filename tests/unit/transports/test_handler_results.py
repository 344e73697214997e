"""The exception of a handler determines the result of its event."""

import asyncio
from typing import Any

import pytest

from pillarbox.core.errors import NackedError, PermanentError, RejectedError, SendError, UnavailableError
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.transports.handlers import Handlers
from tests.unit.transports.batches import call


def raising(error: BaseException, *, is_async: bool) -> Handlers:
    handlers = Handlers()

    def fail(event: Any, context: Any) -> None:
        raise error

    async def afail(event: Any, context: Any) -> None:
        raise error

    handlers.on("*", name="h")(afail if is_async else fail)
    return handlers


both = pytest.mark.parametrize("is_async", [True, False], ids=["async", "sync"])


@both
@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("no such address\nsecond line"), "handler h raised ValueError: no such address"),
        (KeyError(), "handler h raised KeyError"),
        (SystemExit(3), "handler h raised SystemExit: 3"),
        (SendError("which?"), "handler h raised SendError: which?"),
        (asyncio.CancelledError("by its own"), "handler h raised CancelledError: by its own"),
    ],
)
async def test_an_exception_rejects_the_event_with_type_and_first_line(
    error: BaseException, text: str, is_async: bool
) -> None:
    result = await call(raising(error, is_async=is_async))
    assert type(result) is RejectedError
    assert (str(result), result.__cause__) == (text, error)


@both
@pytest.mark.parametrize(
    "error", [PermanentError("never"), UnavailableError("away"), NackedError("full"), RejectedError("no")]
)
async def test_a_raised_send_error_is_the_result(error: SendError, is_async: bool) -> None:
    assert await call(raising(error, is_async=is_async)) is error


@both
def test_a_keyboard_interrupt_is_raised(is_async: bool) -> None:
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(call(raising(KeyboardInterrupt(), is_async=is_async)))


async def test_long_errors_are_truncated() -> None:
    result = await call(raising(ValueError("x" * 100_000), is_async=True))
    assert len(str(result)) < 1000


class Speechless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even that")


async def test_an_exception_that_cannot_be_shown_is_named() -> None:
    assert str(await call(raising(Speechless(), is_async=True))) == "handler h raised Speechless"


async def test_an_unknown_handler_is_rejected_and_retried() -> None:
    result = await call(Handlers(), "later")
    assert type(result) is RejectedError
    assert "'later'" in str(result)


async def nothing(event: Any, context: Any) -> None:
    pass


async def test_a_sync_handler_that_returns_an_awaitable_is_an_error() -> None:
    handlers = Handlers()
    something = asyncio.get_running_loop().create_future()
    handlers.on("*", name="coroutine")(lambda event, context: nothing(event, context))
    handlers.on("*", name="future")(lambda event, context: something)
    for name in ("coroutine", "future"):
        result = await call(handlers, name)
        assert type(result) is RejectedError
        assert "async def" in str(result)


async def test_a_failure_affects_only_its_own_event() -> None:
    handlers = Handlers()

    @handlers.on("*", name="h")
    async def picky(event: Any, context: Any) -> None:
        if event.event_id == "b":
            raise ValueError("not this one")

    results = await handlers.send([outgoing(one, handlers.to("h")) for one in "abc"])
    assert [type(result) for result in results] == [type(None), RejectedError, type(None)]
