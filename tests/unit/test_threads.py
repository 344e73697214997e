"""Exceptions on a thread reach the caller; short jobs share a thread, and none waits for one that hangs."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from pillarbox.core.errors import UnavailableError
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


class ThreadLimit:
    """A process that may have so many threads of a pool, as a limit on its tasks does to a container."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.free = 0
        start = threading.Thread.start

        def started(thread: threading.Thread) -> None:
            if thread.name.startswith("pillarbox-handler"):
                if not self.free:
                    raise RuntimeError("can't start new thread")
                self.free -= 1
            start(thread)

        monkeypatch.setattr(threading.Thread, "start", started)


async def test_without_any_thread_no_job_runs_until_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    limit, refused, later = ThreadLimit(monkeypatch), [Noted() for _ in range(5)], [Noted() for _ in range(3)]
    with up_to(2) as threads:
        for job in refused:  # more than the pool may have
            with pytest.raises(UnavailableError, match="can't start new thread; raise the limit"):
                threads.begin_all([job])
        limit.free = 2
        threads.begin_all(later)
        await reported(*later)
    assert [job.thread for job in refused] == [""] * 5


async def test_the_threads_there_are_run_the_jobs_until_more_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    limit, go = ThreadLimit(monkeypatch), threading.Event()
    hangs, others = Noted(lambda: go.wait(BOUND)), [Noted() for _ in range(5)]
    limit.free = 1
    with up_to(2) as threads:
        threads.begin_all([hangs])
        for job in others:
            threads.begin_all([job])
        assert not any(job.is_reported for job in others)
        limit.free = 1
        await reported(*others)
        assert not hangs.is_reported
        go.set()
        await reported(hangs)


async def test_jobs_behind_threads_that_hang_take_no_more_memory_than_the_jobs() -> None:
    go = threading.Event()
    hangs = Noted(lambda: go.wait(BOUND))
    with up_to(1) as threads:
        threads.begin_all([hangs])
        others = [Noted() for _ in range(100)]
        for job in others:
            threads.begin_all([job])
        assert threads._calls.qsize() <= 1
        go.set()
        await reported(hangs, *others)
