"""A replay counts up to a limit, keeps its rate, ends at its limit, and can be resumed."""

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from shutil import copyfile

import pytest

from pillarbox.admin.replay import Progress, Replay
from pillarbox.core.errors import CommandError
from pillarbox.core.event import REPLAY_OF, Event
from pillarbox.core.outcome import DELIVERED
from pillarbox.ops import replay_runs
from pillarbox.record import Outbox
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.testing.conformance.lane_owner import Owner


class Hours:
    """A clock that advances only during sleeps."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.seconds, UTC)

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds


HistoryOf = Callable[[int], Awaitable[tuple[SqliteStore, Owner]]]


@pytest.fixture
async def history_of(tmp_path: Path, sqlite_template: Path) -> AsyncIterator[HistoryOf]:
    """Creates a store with delivered events and an owner of its lane."""
    path = tmp_path / "outbox.db"
    copyfile(sqlite_template, path)
    store = SqliteStore(path)

    async def make(count: int) -> tuple[SqliteStore, Owner]:
        owner = await Owner.of(store)
        with closing(sqlite3.connect(path)) as connection, connection:
            events = [Event("order.placed", {}, event_id=f"evt-{number}", key="k") for number in range(count)]
            connection.execute("BEGIN")
            Outbox().record(connection, *events)
        while ready := await owner.ready():
            await owner.settle(DELIVERED, *ready, to="orders")
        return store, owner

    yield make
    await store.aclose()


async def copies(owner: Owner) -> list[str]:
    return [message.headers[REPLAY_OF] for message in sorted(await owner.ready())]


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay_runs, "BATCH", 4)
    monkeypatch.setattr(replay_runs, "COUNTED", 6)


@pytest.mark.parametrize(
    ("events", "most", "counted"), [(0, None, 0), (6, None, 6), (9, None, 7), (9, 3, 3), (2, 3, 2)]
)
async def test_the_count_is_exact_up_to_a_limit(
    history_of: HistoryOf, events: int, most: int | None, counted: int
) -> None:
    store, owner = await history_of(events)
    assert await replay_runs.count(store, Replay(most=most)) == replay_runs.Count(counted)
    assert await owner.ready() == []


async def test_progress_is_reported_from_the_start(history_of: HistoryOf) -> None:
    store, _ = await history_of(9)
    reported: list[Progress] = []
    done = await replay_runs.run(store, Replay(), by="ada", progress=reported.append)
    assert [(progress.copied, progress.done) for progress in reported] == [
        (0, False),
        (4, False),
        (8, False),
        (9, True),
    ]
    assert reported[-1] == done


@pytest.mark.parametrize("most", [1, 4, 5, 8])
async def test_a_limit_replays_the_oldest_events(history_of: HistoryOf, most: int) -> None:
    store, owner = await history_of(9)
    done = await replay_runs.run(store, Replay(most=most), by="")
    assert (done.copied, done.done) == (most, True)
    assert await copies(owner) == [f"evt-{number}" for number in range(most)]


@pytest.mark.parametrize(("rate", "seconds"), [(1.0, 8), (0.5, 16), (2.0, 4), (100.0, 0.08)])
async def test_the_rate_is_limited(history_of: HistoryOf, rate: float, seconds: float) -> None:
    store, _ = await history_of(9)
    clock = Hours()
    reported: list[tuple[float, int]] = []
    await replay_runs.run(
        store,
        Replay(rate=rate),
        by="",
        clock=clock,
        progress=lambda progress: reported.append((clock.seconds, progress.copied)),
    )
    assert clock.seconds == pytest.approx(seconds)
    assert all(copied <= clock_seconds * rate + max(1, rate) for clock_seconds, copied in reported)


async def test_an_interrupted_replay_can_be_resumed(history_of: HistoryOf) -> None:
    store, owner = await history_of(9)

    def interrupt(progress: Progress) -> None:
        if progress.copied == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await replay_runs.run(store, Replay(), by="", progress=interrupt)
    [entry] = (await store.admin.audit.list()).entries
    left = await store.admin.replays.find(entry.id)
    assert left is not None
    clock = Hours()
    done = await replay_runs.resume(store, left._replace(plan=Replay(rate=1.0)), clock=clock)
    assert (done.copied, done.done, clock.seconds) == (9, True, 4)
    assert await copies(owner) == [f"evt-{number}" for number in range(9)]
    again = await replay_runs.resume(store, done)
    assert again == done


async def test_concurrent_resumes_replay_nothing_twice(history_of: HistoryOf) -> None:
    store, owner = await history_of(9)
    left = await store.admin.replays.begin(Replay())
    await replay_runs.resume(store, left)
    with pytest.raises(CommandError, match=f"replay {left.number}"):
        await replay_runs.resume(store, left)
    assert len(await copies(owner)) == 9
