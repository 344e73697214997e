"""Crashes of consumers, as the metadata of a committed offset counts them, and which messages are delivered alone."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pillarbox.transports.kafka.crashes import CrashCounts
from pillarbox.transports.kafka.messages import MAX_WAIT, PartitionMessages
from pillarbox.transports.kafka.offsets import Commit, PartitionName, Received

NAME = ("orders", 0)
OTHER = ("orders", 1)
RETRY = ("orders.g.retry", 0)
PREFETCH = 4
MAX_CRASHES = 5


class Broker:
    """What a group committed, and one consumer of it after the other."""

    def __init__(self, logs: dict[PartitionName, list[float]], prefetch: int = PREFETCH) -> None:
        """logs: by partition, the times at which its messages are due."""
        self.logs = logs
        self.prefetch = prefetch
        self.committed: dict[PartitionName, Commit] = {}
        self.messages = PartitionMessages(prefetch)
        self.now = 0.0

    def start(self) -> None:
        """A new consumer with all partitions, and all of their messages that it has room for."""
        self.messages = PartitionMessages(self.prefetch)
        for name in self.logs:
            at = self.committed.get(name)
            counts = CrashCounts.parse(at.metadata) if at else None
            start = at.offset if at else None
            self.messages.assign(name, start=start, committed=at and Commit(at.offset, str(counts)), counts=counts)
        self._next = {name: self.committed[name].offset if name in self.committed else 0 for name in self.logs}

    def commit(self) -> None:
        confirm(self.messages)
        self.committed |= {n: at for n, one in self.messages.assignments.items() if (at := one.committed) is not None}

    def take(self) -> Received | None:
        """What the thread and the loop do until a message is delivered; None: nothing is left to deliver."""
        for _ in range(100):
            self.messages.release(self.now)
            if self.messages.isolate() or self.messages.unmarked:
                self.commit()
            if (message := self.messages.take()) is not None:
                return message
            if not self.messages.full and not self.messages.in_quarantine and not self._receive():
                return None
        raise AssertionError("a hundred turns delivered nothing")

    def _receive(self) -> bool:
        for name, log in self.logs.items():
            if name not in self.messages.unmarked and (offset := self._next[name]) < len(log):
                self._next[name] += 1
                received = Received(self.messages.assignments[name], offset, None, b"", [])
                self.messages.receive(received, due=log[offset], now=self.now)
                return True
        return False


def consume(
    broker: Broker, killers: set[tuple[PartitionName, int]], *, commits: random.Random
) -> tuple[int, set[object]]:
    """Consume everything that is due with consumers that each killer kills; returns the crashes and the dead letters.

    Whether a commit that nothing waits for happened before a crash is random.
    """
    crashes, dead = 0, set[object]()
    while True:
        broker.start()
        while (message := broker.take()) is not None:
            if message.id in killers and (message.crashes or 0) < MAX_CRASHES:
                crashes += 1
                break
            if message.id in killers:
                dead.add(message.id)
            broker.messages.acknowledge(message, rejected=message.id in killers)
            if commits.random() < 0.3:
                broker.commit()
        else:
            broker.commit()
            return crashes, dead


@given(st.integers(0, 1_000), st.dictionaries(st.integers(0, 2**62), st.integers(1, 10**8), max_size=20))
def test_the_metadata_says_what_was_counted(starts: int, alone: dict[int, int]) -> None:
    counts = CrashCounts(starts, alone)
    assert CrashCounts.parse(str(counts)) == counts


@given(st.text(max_size=100) | st.just("pillarbox starts=") | st.just("pillarbox starts=1 alone=1:"))
def test_other_metadata_counts_nothing(text: str) -> None:
    assert CrashCounts.parse(text) == CrashCounts()
    assert CrashCounts.parse(None) == CrashCounts()


def test_the_metadata_stays_short_and_keeps_the_messages_that_crashed_most() -> None:
    counts = CrashCounts(1_000, {2**62 + n: 1 + (n == 500) for n in range(1_000)})
    text = str(counts)
    assert len(text) < 1_000
    assert CrashCounts.parse(text).alone[2**62 + 500] == 2


@pytest.mark.parametrize("seed", range(30))
def test_exactly_the_messages_that_crash_consumers_are_dead_lettered(seed: int) -> None:
    rng = random.Random(seed)
    logs = {NAME: [0.0] * 30, OTHER: [0.0] * 30}
    killers = {(name, rng.randrange(30)) for name in logs for _ in range(rng.randrange(3))}
    crashes, dead = consume(broker := Broker(logs), killers, commits=rng)
    assert dead == killers
    # Each: five times alone, and twice among others, which another killer's crashes may lengthen.
    assert crashes <= len(killers) * (MAX_CRASHES + 2 * 3)
    assert all(at.offset == 30 for at in broker.committed.values())


@pytest.mark.parametrize("seed", range(10))
def test_a_killer_behind_a_retry_that_is_not_due_is_found(seed: int) -> None:
    """The first message waits for an hour, so its offset stays committed while many behind it are processed."""
    rng = random.Random(seed)
    broker = Broker({RETRY: [3600.0] + [0.0] * 100})
    killers = {(RETRY, 70), (RETRY, 71)}
    crashes, dead = consume(broker, killers, commits=rng)
    assert dead == killers
    assert crashes <= 30
    assert broker.committed[RETRY].offset == 0


def test_consumers_that_are_killed_while_they_progress_dead_letter_no_message() -> None:
    """Kills that no message causes: what a consumer commits meanwhile ends the count."""
    broker = Broker({NAME: [0.0] * 200})
    rng = random.Random(1)
    handled = 0
    while handled < 200:
        broker.start()
        for _ in range(rng.randrange(1, 10)):
            if (message := broker.take()) is None:
                handled = 200
                break
            assert (message.crashes or 0) < MAX_CRASHES
            broker.messages.acknowledge(message)
            broker.commit()


@pytest.mark.parametrize("metadata", ["", "pillarbox starts=1000", "pillarbox starts=999999999 alone=0:999999999"])
def test_no_metadata_keeps_a_partition_from_being_read(metadata: str) -> None:
    broker = Broker({NAME: [0.0]})
    broker.committed[NAME] = Commit(0, metadata)
    broker.start()
    message = broker.take()
    assert message is not None
    assert broker.messages.acknowledge(message)
    broker.commit()
    assert broker.committed[NAME].offset == 1


def test_a_commit_before_the_first_message_does_not_count_the_consumer() -> None:
    """A group that begins at the end of a topic commits that offset at once."""
    messages = PartitionMessages(prefetch=10)
    messages.assign(NAME, start=7)
    confirm(messages)
    assert messages.assignments[NAME].committed == (7, "")
    messages.receive(Received(messages.assignments[NAME], 7, None, b"", []), due=0.0, now=0.0)
    assert messages.take() is None
    confirm(messages)
    assert messages.assignments[NAME].committed == (7, "pillarbox starts=1")
    assert messages.take() is not None


def test_messages_in_quarantine_are_delivered_one_at_a_time_after_all_others() -> None:
    messages = PartitionMessages(prefetch=10)
    messages.assign(OTHER)
    messages.assign(NAME, start=0, counts=CrashCounts(starts=2))
    ids = [(name, offset) for name in (OTHER, NAME) for offset in range(2)]
    for name, offset in ids:
        messages.receive(Received(messages.assignments[name], offset, None, b"", []), due=0.0, now=0.0)
    confirm(messages)
    taken: list[Received] = []
    for _ in ids:
        messages.isolate()
        confirm(messages)
        message = messages.take()
        if message is None:  # the first two are in flight together, and nothing in quarantine is delivered beside them
            assert [one.crashes for one in taken] == [None, None]
            assert not messages.isolate()
            for one in taken:
                messages.acknowledge(one)
            assert messages.isolate()
            assert messages.take() is None, "it is not yet committed that it is delivered alone"
            confirm(messages)
            message = messages.take()
        assert message is not None
        taken.append(message)
        if message.crashes is not None:
            assert messages.alone_in_flight
            assert messages.take() is None
            messages.acknowledge(message)
    assert [(one.id, one.crashes) for one in taken] == list(zip(ids, [None, None, 0, 0], strict=True))
    assert not messages.in_quarantine


def test_messages_wait_only_so_long_for_a_commit_and_alone_also_without_one() -> None:
    broker = Broker({NAME: [0.0], OTHER: [0.0]})
    broker.committed[NAME] = Commit(0, "pillarbox starts=2")
    broker.start()
    messages = broker.messages
    assert broker._receive()
    assert broker._receive()
    elapsed = 100.0
    taken: list[Received] = []
    for _ in range(2):
        messages.isolate()
        assert messages.take() is None
        for waited in (0.0, MAX_WAIT - 0.1):
            assert not messages.end_wait(elapsed + waited, now=0.0)
            assert messages.take() is None
        elapsed += MAX_WAIT
        assert messages.end_wait(elapsed, now=0.0)
        message = messages.take()
        assert message is not None
        assert messages.take() is None
        taken.append(message)
        messages.acknowledge(message)
    assert [(one.id, one.crashes) for one in taken] == [((OTHER, 0), None), ((NAME, 0), 0)]
    assert not messages.awaits_commit
    assert not messages.end_wait(elapsed, now=0.0)
    broker.commit()
    assert broker.committed == dict.fromkeys((NAME, OTHER), (1, "pillarbox starts=1"))


def test_a_wait_that_a_commit_ended_is_not_part_of_the_next() -> None:
    broker = Broker({NAME: [0.0], OTHER: [0.0]})
    broker.start()
    assert broker._receive()
    assert not broker.messages.end_wait(1.0, now=0.0)
    broker.commit()
    assert not broker.messages.end_wait(2.0, now=0.0)
    assert broker._receive()
    assert not broker.messages.end_wait(1.0 + MAX_WAIT, now=0.0)


def confirm(messages: PartitionMessages) -> None:
    for name, one in messages.assignments.items():
        if (wanted := one.to_commit) is not None:
            one.committed = wanted
            messages.note_commit(name, wanted, now=0.0)


def test_only_a_partition_with_a_message_in_flight_counts_a_consumer_that_leaves() -> None:
    broker = Broker({NAME: [0.0] * 2, OTHER: [0.0] * 2}, prefetch=10)
    broker.start()
    while (message := broker.take()) is not None:
        if message.assignment.name == OTHER:
            broker.messages.acknowledge(message)
    broker.commit()
    broker.messages.leave()
    broker.commit()
    assert broker.committed == {NAME: (0, "pillarbox starts=1"), OTHER: (2, "")}


def test_a_partition_that_is_revoked_counts_no_crash_also_in_quarantine() -> None:
    broker = Broker({NAME: [0.0]})
    broker.committed[NAME] = before = Commit(0, "pillarbox starts=3 alone=0:2")
    broker.start()
    message = broker.take()
    assert message is not None
    assert (message.crashes, broker.committed[NAME].metadata) == (2, "pillarbox starts=4 alone=0:3")
    [ended] = broker.messages.revoke([NAME])
    assert ended.to_commit == before
    assert not broker.messages.acknowledge(message)
    assert not broker.messages.in_quarantine


def test_an_outage_counts_no_crash() -> None:
    broker = Broker({NAME: [0.0]})
    broker.committed[NAME] = Commit(0, "pillarbox starts=3 alone=0:2")
    broker.start()
    for _ in range(3):
        message = broker.take()
        assert message is not None
        assert (message.crashes, broker.committed[NAME].metadata) == (2, "pillarbox starts=4 alone=0:3")
        broker.messages.restart()
        assert not broker.messages.acknowledge(message)
        broker._next[NAME] = 0
    message = broker.take()
    assert message is not None
    assert broker.messages.acknowledge(message)
    broker.commit()
    assert broker.committed[NAME] == (1, "pillarbox starts=1")


def test_a_message_in_quarantine_that_is_held_in_its_place_returns_and_blocks_no_other() -> None:
    broker = Broker({NAME: [0.0] * 2}, prefetch=2)
    broker.committed[NAME] = Commit(0, "pillarbox starts=2")
    broker.start()
    first = broker.take()
    assert first is not None
    assert first.crashes == 0
    assert broker.messages.hold(first, due=10.0)
    second = broker.take()
    assert second is not None
    assert (second.offset, second.crashes) == (1, 0)
    broker.messages.acknowledge(second)
    broker.now = 10.0
    again = broker.take()
    assert again is not None
    assert (again.offset, again.crashes) == (0, 0)
    broker.messages.acknowledge(again)
    broker.commit()
    assert broker.committed[NAME].offset == 2
