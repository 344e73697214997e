"""Exceptions on a thread reach the caller; short jobs share a thread, and none waits for one that hangs."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from pillarbox.testing.waiting import eventually
from pillarbox.threads import Threads

BOUND = 60.0


class OwnError(BaseException):
    pass


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (ValueError("no"), ValueError),
        (SystemExit(3), SystemExit),
        (asyncio.CancelledError(), asyncio.CancelledError),
        (OwnError(), OwnError),
        # A future cannot hold StopIteration, and GeneratorExit would close the awaiting coroutine.
        (StopIteration(1), RuntimeError),
        (GeneratorExit(), RuntimeError),
    ],
)
async def test_every_exception_is_raised_to_the_caller(error: BaseException, raised: type[BaseException]) -> None:
    def function() -> None:
        raise error

    threads = Threads(1)
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


class Noted:
    """A job that records its result."""

    dropped = False

    def __init__(self, work: Callable[[], object] = lambda: None) -> None:
        self._work = work
        self.thread = ""
        self.is_reported = False

    def do(self) -> None:
        self.thread = threading.current_thread().name
        self._work()

    def done(self) -> None:
        self.is_reported = True


@contextmanager
def up_to(most: int) -> Iterator[Threads]:
    threads = Threads(most)
    yield threads
    threads.close()


async def reported(*jobs: Noted) -> None:
    async def all_are_reported() -> bool:
        return all(job.is_reported for job in jobs)

    await eventually(all_are_reported, within=BOUND)


async def test_short_jobs_started_together_share_a_thread() -> None:
    finished = threading.Event()
    jobs = [*(Noted() for _ in range(9)), Noted(finished.set)]
    with up_to(10) as threads:
        threads.begin_all(jobs)
        finished.wait(BOUND)  # the event loop is blocked, so that it wakes no other thread
        assert threads._started == 1
        await reported(*jobs)


async def test_long_jobs_run_concurrently() -> None:
    together = threading.Barrier(5)
    jobs = [Noted(lambda: together.wait(BOUND)) for _ in range(4)]
    with up_to(4) as threads:
        threads._usual = 1.0
        threads.begin_all(jobs)
        together.wait(BOUND)  # the event loop is blocked, so that it wakes no other thread
        await reported(*jobs)
    assert len({job.thread for job in jobs}) == 4


async def test_jobs_after_one_that_hangs_get_their_own_threads() -> None:
    together = threading.Barrier(4)
    jobs = [Noted(lambda: together.wait(BOUND)) for _ in range(4)]
    with up_to(4) as threads:
        threads.begin_all(jobs)
        await reported(*jobs)
    assert len({job.thread for job in jobs}) == 4


async def test_a_finished_job_is_reported_while_its_thread_hangs_in_the_next() -> None:
    go = threading.Event()
    short, hangs = Noted(), Noted(lambda: go.wait(BOUND))
    with up_to(1) as threads:
        threads.begin_all([short, hangs])
        await reported(short)
        assert not hangs.is_reported
        go.set()
        await reported(hangs)


async def test_a_cancelled_job_is_not_started() -> None:
    unwanted, wanted = Noted(), Noted()
    unwanted.dropped = True
    with up_to(1) as threads:
        threads.begin_all([unwanted, wanted])
        await reported(wanted)
    assert unwanted.thread == ""
