"""Whatever a function raises on a thread reaches whoever awaits it."""

import asyncio

import pytest

from pillarbox.core.threads import Threads


class OwnError(BaseException):
    pass


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (ValueError("no"), ValueError),
        (SystemExit(3), SystemExit),
        (asyncio.CancelledError(), asyncio.CancelledError),
        (OwnError(), OwnError),
        # A future cannot hold the one, and the other closes the coroutine that awaits it.
        (StopIteration(1), RuntimeError),
        (GeneratorExit(), RuntimeError),
    ],
)
async def test_every_exception_ends_the_call(error: BaseException, raised: type[BaseException]) -> None:
    def function() -> None:
        raise error

    threads = Threads[None](1)
    caught: BaseException | None = None
    try:
        async with asyncio.timeout(30):
            await threads.begin(function)
    except BaseException as ended:  # SystemExit among them
        caught = ended
    finally:
        threads.close()
    assert type(caught) is raised
    assert caught is error or caught.__cause__ is error
