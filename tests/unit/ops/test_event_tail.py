"""Tailing events: each is shown once as recorded and once per outcome, also if it is late, moved or deleted."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from pillarbox.admin.listing import EventFilter
from pillarbox.core.clock import SystemClock
from pillarbox.core.event import Event
from pillarbox.core.outcome import DELIVERED, Dead, Outcome, Retry
from pillarbox.ops import event_tail
from pillarbox.ops.event_tail import Tail, TailResult
from pillarbox.record import Outbox
from pillarbox.stores.memory import MemoryStore, MemoryTransaction
from pillarbox.testing.conformance.lane_owner import Owner
from pillarbox.testing.lookup import dead_letters

AGAIN = Retry(delay=0, error="no")
ENDS: list[Outcome] = [DELIVERED, AGAIN, Dead(error="no")]


class ByHand(SystemClock):
    """A clock that only the test advances."""

    def __init__(self) -> None:
        self.time = datetime(2026, 11, 30, 9, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    def pass_by(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


class Fixture:
    """A store, an owner of its lane, and a tail."""

    def __init__(self) -> None:
        self.clock = ByHand()
        self.store = MemoryStore(clock=self.clock)

    def tail(self, **more: object) -> Tail:
        wanted = EventFilter(**{name: more.pop(name) for name in ("destination", "event_type") if name in more})  # type: ignore[arg-type]  # as each test needs it
        return Tail(self.store, wanted, now=self.clock.now, **more)  # type: ignore[arg-type]  # as each test needs it

    def begin(self, *ids: str) -> MemoryTransaction:
        transaction = self.store.transaction().__enter__()
        Outbox().record(transaction, *(Event("order.placed", {}, event_id=one) for one in ids))
        return transaction

    def record(self, *ids: str) -> None:
        self.begin(*ids).__exit__(None, None, None)
        self.clock.pass_by(1)


@pytest.fixture
def stage() -> Fixture:
    return Fixture()


def changes_of(look: TailResult) -> list[tuple[str, str]]:
    return [(change.kind, change.event.event_id) for change in look.changes]


async def test_only_events_after_the_start_are_shown(stage: Fixture) -> None:
    stage.record("old")
    tail = stage.tail()
    assert changes_of(await tail.poll()) == []
    stage.record("a")
    stage.record("b")
    assert changes_of(await tail.poll()) == [("recorded", "a"), ("recorded", "b")]
    assert changes_of(await tail.poll()) == []


async def test_tailing_starts_on_an_empty_outbox(stage: Fixture) -> None:
    tail = stage.tail()
    assert changes_of(await tail.poll()) == []
    stage.record("a")
    assert changes_of(await tail.poll()) == [("recorded", "a")]


async def test_each_outcome_is_shown_once_with_its_attempts(stage: Fixture) -> None:
    tail = stage.tail()
    owner = await Owner.of(stage.store, lease=100_000)
    await tail.poll()
    stage.record("sent", "dead")
    for message in await owner.ready():
        await owner.settle(AGAIN, message, to="orders")
    assert sorted(changes_of(await tail.poll())) == [
        ("recorded", "dead"),
        ("recorded", "sent"),
        ("retried", "dead"),
        ("retried", "sent"),
    ]
    for message in await owner.due():
        await owner.settle(DELIVERED if message.event_id == "sent" else Dead(error="no"), message)
    assert sorted(changes_of(await tail.poll())) == [("dead-lettered", "dead"), ("delivered", "sent")]
    assert changes_of(await tail.poll()) == []


async def test_the_lines_of_a_poll_are_in_order_of_time(stage: Fixture) -> None:
    tail = stage.tail()
    owner = await Owner.of(stage.store, lease=100_000)
    await tail.poll()
    stage.record("a")
    await owner.settle(DELIVERED, *await owner.ready())
    stage.clock.pass_by(1)
    stage.record("b")
    assert changes_of(await tail.poll()) == [("recorded", "a"), ("delivered", "a"), ("recorded", "b")]


async def test_a_split_event_has_an_outcome_per_destination(stage: Fixture) -> None:
    tail = stage.tail()
    owner = await Owner.of(stage.store, lease=100_000)
    await tail.poll()
    stage.record("a")
    await tail.poll()
    [message] = await owner.ready()
    await owner.split(message, "orders", "mail")
    assert changes_of(await tail.poll()) == []
    await owner.settle(DELIVERED, *await owner.ready())
    looked = await tail.poll()
    assert sorted(change.event.destination for change in looked.changes) == ["mail", "orders"]
    assert {change.kind for change in looked.changes} == {"delivered"}


async def test_attempts_before_the_split_are_not_shown_again(stage: Fixture) -> None:
    tail = stage.tail()
    owner = await Owner.of(stage.store, lease=100_000)
    await tail.poll()
    stage.record("a")
    await owner.count_attempt("no route", *await owner.ready(), to="")
    assert changes_of(await tail.poll()) == [("recorded", "a"), ("retried", "a")]
    await owner.settle(DELIVERED, *await owner.ready(), to="orders")
    assert changes_of(await tail.poll()) == [("delivered", "a")]


async def test_a_transaction_that_commits_late_is_shown(stage: Fixture) -> None:
    stage.record("old")
    tail = stage.tail()
    await tail.poll()
    late = stage.begin("late")
    for number in range(5):
        stage.clock.pass_by(10)
        stage.record(f"early {number}")
        assert changes_of(await tail.poll()) == [("recorded", f"early {number}")]
    late.__exit__(None, None, None)
    assert changes_of(await tail.poll()) == [("recorded", "late")]
    assert changes_of(await tail.poll()) == []


async def test_a_transaction_begun_before_the_start_is_shown_when_it_commits(stage: Fixture) -> None:
    late = stage.begin("late")
    stage.clock.pass_by(5)
    stage.record("old")
    tail = stage.tail()
    assert changes_of(await tail.poll()) == []
    late.__exit__(None, None, None)
    assert changes_of(await tail.poll()) == [("recorded", "late")]


async def test_an_event_is_followed_long_after_it_was_recorded(stage: Fixture) -> None:
    tail = stage.tail()
    owner = await Owner.of(stage.store, lease=100_000)
    await tail.poll()
    stage.record("slow")
    [message] = await owner.ready()
    assert changes_of(await tail.poll()) == [("recorded", "slow")]
    stage.clock.pass_by(3600)
    for name in ("later", "even later", "last"):
        stage.record(name)
        stage.clock.pass_by(100)
        assert changes_of(await tail.poll()) == [("recorded", name)]
    await owner.settle(DELIVERED, message)
    assert changes_of(await tail.poll()) == [("delivered", "slow")]


async def test_an_event_that_left_all_tables_is_shown_as_gone(stage: Fixture) -> None:
    without_history = stage.store.clone(history=False)
    tail = stage.tail()
    owner = await Owner.of(without_history, lease=100_000)
    await tail.poll()
    stage.record("a")
    await tail.poll()
    await owner.settle(DELIVERED, *await owner.ready())
    results = [changes_of(await tail.poll()) for _ in range(3)]
    assert [change for result in results for change in result] == [("gone", "a")]


async def test_an_id_recorded_again_is_another_event(stage: Fixture) -> None:
    tail = stage.tail()
    owner = await Owner.of(stage.store, lease=100_000)
    await tail.poll()
    for _ in range(2):
        stage.record("a")
        await owner.settle(DELIVERED, *await owner.ready())
    changes = changes_of(await tail.poll())
    assert Counter(changes) == {("recorded", "a"): 2, ("delivered", "a"): 2}
    assert changes_of(await tail.poll()) == []


async def test_a_retried_dead_letter_is_the_same_event(stage: Fixture) -> None:
    tail = stage.tail()
    owner = await Owner.of(stage.store, lease=100_000)
    await tail.poll()
    stage.record("a")
    await owner.settle(Dead(error="no"), *await owner.ready())
    await tail.poll()
    [dead_letter] = await dead_letters(stage.store)
    await stage.store.admin.dead_letters.retry([dead_letter.id])
    assert changes_of(await tail.poll()) == []
    await owner.settle(DELIVERED, *await owner.ready())
    assert changes_of(await tail.poll()) == [("delivered", "a")]


async def test_since_shows_existing_events(stage: Fixture) -> None:
    stage.record("old")
    since = stage.clock.now()
    stage.record("a")
    tail = stage.tail(since=since)
    assert changes_of(await tail.poll()) == [("recorded", "a")]
    stage.record("b")
    assert changes_of(await tail.poll()) == [("recorded", "b")]


async def test_events_can_be_filtered_by_destination(stage: Fixture) -> None:
    tail = stage.tail(destination="mail")
    owner = await Owner.of(stage.store, lease=100_000)
    await tail.poll()
    stage.record("a")
    [message] = await owner.ready()
    await owner.split(message, "orders", "mail")
    assert changes_of(await tail.poll()) == [("recorded", "a")]
    stage.clock.pass_by(3600)
    stage.record("b")
    await tail.poll()
    await tail.poll()
    await owner.settle(DELIVERED, *(one for one in await owner.ready() if one.event_id == "a"))
    found = [change for _ in range(3) for change in (await tail.poll()).changes]
    assert [(change.kind, change.event.destination) for change in found] == [("delivered", "mail")]


@pytest.fixture
def small_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits a poll to six rows."""
    monkeypatch.setattr(event_tail, "PAGE", 3)
    monkeypatch.setattr(event_tail, "PAGES", 2)


def record_each(stage: Fixture, numbers: range) -> list[tuple[str, str]]:
    for number in numbers:
        stage.record(str(number))
    return [("recorded", str(number)) for number in numbers]


@pytest.mark.usefixtures("small_polls")
async def test_a_full_poll_is_reported_and_the_next_polls_return_the_rest(stage: Fixture) -> None:
    tail = stage.tail(overlap=0)
    await tail.poll()
    record_each(stage, range(6))
    assert not (await tail.poll()).incomplete
    recorded = record_each(stage, range(6, 20))
    results = [await tail.poll() for _ in range(4)]
    assert [result.incomplete for result in results] == [True, False, False, False]
    assert [result.gap for result in results] == [None] * 4
    assert changes_of(results[0]) == recorded[-6:]
    assert sorted(change for result in results for change in changes_of(result)) == sorted(recorded)


@pytest.mark.usefixtures("small_polls")
async def test_the_start_reads_one_page_and_shows_no_earlier_events(stage: Fixture) -> None:
    record_each(stage, range(20))
    tail = stage.tail()
    result = await tail.poll()
    assert result.gap == stage.clock.now() - timedelta(seconds=6) + timedelta(milliseconds=1)
    assert len(tail._known) == 6
    recorded = record_each(stage, range(20, 24))
    assert [change for _ in range(4) for change in changes_of(await tail.poll())] == recorded


@pytest.mark.usefixtures("small_polls")
async def test_a_large_transaction_before_the_start_is_not_shown(stage: Fixture) -> None:
    stage.record(*(str(number) for number in range(20)))
    tail = stage.tail()
    await tail.poll()
    recorded = record_each(stage, range(20, 24))
    assert [change for _ in range(4) for change in changes_of(await tail.poll())] == recorded


@pytest.mark.usefixtures("small_polls")
@pytest.mark.parametrize(("overlap", "shown"), [(60, 20), (10, 11), (2, 6)])
async def test_events_that_no_poll_reaches_are_reported(stage: Fixture, overlap: int, shown: int) -> None:
    since = stage.clock.now()
    recorded = record_each(stage, range(20))
    tail = stage.tail(since=since, overlap=overlap)
    results = [await tail.poll() for _ in range(5)]
    assert sorted(change for result in results for change in changes_of(result)) == sorted(recorded[-shown:])
    gap = None if shown == 20 else since + timedelta(seconds=20 - shown)
    assert [result.gap for result in results] == [gap, None, None, None, None]


async def test_events_with_a_future_time_are_shown(stage: Fixture) -> None:
    tail = stage.tail()
    await tail.poll()
    stage.clock.pass_by(86_400 * 365)
    ahead = stage.begin("ahead")
    ahead.__exit__(None, None, None)
    stage.clock.pass_by(-86_400 * 365)
    assert changes_of(await tail.poll()) == [("recorded", "ahead")]
    stage.record("now")
    assert changes_of(await tail.poll()) == [("recorded", "now")]
    stage.record("then")
    assert changes_of(await tail.poll()) == [("recorded", "then")]


@pytest.mark.parametrize("seed", range(10))
async def test_no_event_is_missed_or_repeated(stage: Fixture, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Transactions of any length within the overlap, outcomes at any time, polls that reach their limits."""
    monkeypatch.setattr(event_tail, "PAGE", 4)
    monkeypatch.setattr(event_tail, "PAGES", 3)
    rng, tail = Random(seed), stage.tail(overlap=20)
    owner = await Owner.of(stage.store, lease=1_000_000)
    await tail.poll()
    shown: Counter[tuple[str, str]] = Counter()
    still_open: list[tuple[datetime, MemoryTransaction]] = []
    ends: dict[str, str] = {}
    for number in range(300):
        stage.clock.pass_by(rng.random())
        if rng.random() < 0.5:
            still_open.append((stage.clock.now(), stage.begin(f"e{number}")))
        for pair in list(still_open):
            if rng.random() < 0.1 or stage.clock.now() - pair[0] > timedelta(seconds=18):
                still_open.remove(pair)
                pair[1].__exit__(None, None, None)
        for message in [*await owner.ready(), *await owner.due()]:
            if rng.random() < 0.1:
                outcome: Outcome = rng.choice(ENDS)
                await owner.settle(outcome, message, to="orders")
                if outcome is not AGAIN:
                    ends[message.event_id] = "delivered" if outcome is DELIVERED else "dead-lettered"
        if rng.random() < 0.5:
            looked = await tail.poll()
            assert looked.gap is None
            shown.update(changes_of(looked))
    for _, transaction in still_open:
        transaction.__exit__(None, None, None)
    for message in [*await owner.ready(), *await owner.due()]:
        await owner.settle(DELIVERED, message, to="orders")
        ends[message.event_id] = "delivered"
    for _ in range(100):
        shown.update(changes_of(await tail.poll()))
    assert len(ends) > 100
    once = {change: count for change, count in shown.items() if change[0] != "retried"}
    assert once == {("recorded", one): 1 for one in ends} | {(end, one): 1 for one, end in ends.items()}
