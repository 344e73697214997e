"""Which offsets may be committed, and which messages are ready, held or void: without a client."""

import random

from pillarbox.transports.kafka.messages import PartitionMessages
from pillarbox.transports.kafka.offsets import Assignment, Commit, Received

NAME = ("orders", 0)


def received(messages: PartitionMessages, offset: int, *, due: float = 0.0, now: float = 0.0) -> Received:
    message = Received(messages.assignments[NAME], offset, None, b"", [])
    messages.receive(message, due=due, now=now)
    return message


def test_nothing_is_committed_before_something_was_received() -> None:
    assert Assignment(NAME).to_commit is None


def test_the_position_never_passes_an_unacknowledged_message_in_any_order() -> None:
    offsets = [3, 4, 7, 8, 20, 21]  # compaction leaves gaps
    for seed in range(50):
        assignment = Assignment(NAME)
        for offset in offsets:
            assignment.receive(offset)
        left = list(offsets)
        order = random.Random(seed).sample(offsets, len(offsets))
        for offset in order:
            assert assignment.position == min(left)
            assignment.acknowledge(offset)
            left.remove(offset)
        assert assignment.position == 22


def test_an_offset_is_committed_once() -> None:
    assignment = Assignment(NAME)
    assignment.receive(5)
    assignment.acknowledge(5)
    assert assignment.to_commit == Commit(6, "pillarbox starts=1")
    assignment.committed = assignment.to_commit
    assert assignment.to_commit is None


def test_a_partition_is_read_again_from_what_was_skipped_first() -> None:
    assignment = Assignment(NAME)
    assignment.skip(9)
    assignment.skip(10)
    assert (assignment.start, assignment.position) == (9, 9)
    assignment = Assignment(NAME, start=4)
    assignment.skip(9)
    assert (assignment.start, assignment.position) == (4, 4)


def test_an_ended_assignment_takes_its_messages_along() -> None:
    messages = PartitionMessages(prefetch=3)
    messages.assign(NAME)
    messages.assignments[NAME].marked = True
    received(messages, 0)
    received(messages, 1)
    held = received(messages, 2, due=100.0)
    in_flight = messages.take()
    assert in_flight is not None
    [ended] = messages.end([NAME])
    assert (ended.position, len(messages.ready), messages.held, messages.held_bytes) == (0, 0, 0, 0)
    assert not messages.acknowledge(in_flight)
    assert not messages.acknowledge(held)
    assert not messages.full


def test_held_messages_become_ready_by_their_due_time_as_far_as_there_is_room() -> None:
    messages = PartitionMessages(prefetch=2)
    messages.assign(NAME)
    messages.assignments[NAME].marked = True
    for offset, due in enumerate([30.0, 10.0, 20.0]):
        received(messages, offset, due=due)
    assert messages.next_due == 10.0
    assert not messages.release(9.0)
    assert messages.release(30.0)
    first, second = messages.take(), messages.take()
    assert first is not None
    assert second is not None
    assert (first.offset, second.offset, messages.take()) == (1, 2, None)
    messages.acknowledge(first)
    assert messages.release(30.0)
    third = messages.take()
    assert third is not None
    assert (third.offset, messages.assignments[NAME].position) == (0, 0)


def test_a_message_held_in_its_place_returns_although_there_is_no_other_place() -> None:
    messages = PartitionMessages(1)
    messages.assign(NAME)
    messages.assignments[NAME].marked = True
    received(messages, 0)
    message = messages.take()
    assert message is not None
    assert messages.hold(message, due=5.0)
    assert (messages.full, messages.release(4.9), messages.take()) == (True, False, None)
    assert messages.release(5.0)
    assert messages.take() == message
    assert message.assignment.position == 0
    assert messages.acknowledge(message)
    assert (messages.full, messages.held_bytes, message.assignment.position) == (False, 0, 1)


def test_a_due_retry_without_room_does_not_block_the_message_that_keeps_the_room() -> None:
    messages = PartitionMessages(1)
    messages.assign(NAME)
    messages.assignments[NAME].marked = True
    retry = received(messages, 0, due=5.0)
    received(messages, 1)
    message = messages.take()
    assert message is not None
    messages.hold(message, due=10.0)
    assert (messages.next_due, messages.release(5.0)) == (10.0, False)
    assert messages.release(10.0)
    assert messages.take() == message
    messages.acknowledge(message)
    assert messages.next_due == 5.0
    assert messages.release(10.0)
    assert messages.take() == retry


def test_what_follows_the_lost_end_of_a_log_is_not_committed_past() -> None:
    messages = PartitionMessages(10)
    messages.assign(NAME, start=100, committed=Commit(100, ""))
    assignment = messages.assignments[NAME]
    assert messages.assignment_of(NAME, 100) is assignment
    assignment.marked = True
    old = received(messages, 101)
    assert messages.take() == old
    again = messages.assignment_of(NAME, 60)
    again.marked = True
    assert not messages.acknowledge(old)
    assert not messages.full
    new = received(messages, 60)
    assert messages.take() == new
    assert (again.position, again.to_commit) == (60, Commit(60, "pillarbox starts=1"))
    assert messages.acknowledge(new)
    assert again.position == 61


def test_a_message_of_a_lost_partition_is_not_held() -> None:
    messages = PartitionMessages(1)
    messages.assign(NAME)
    messages.assignments[NAME].marked = True
    message = received(messages, 0)
    messages.end([NAME])
    assert not messages.hold(message, due=5.0)


def test_a_wall_clock_that_jumps_shifts_retries_by_as_much_and_loses_none() -> None:
    messages = PartitionMessages(prefetch=2)
    messages.assign(NAME)
    messages.assignments[NAME].marked = True
    received(messages, 0, due=7_200.0, now=0.0)
    assert not messages.release(3_599.0)
    received(messages, 1, due=10.0, now=0.0)
    assert messages.release(3_600.0)
    early = messages.take()
    assert early is not None
    assert early.offset == 1
    messages.acknowledge(early)
    assert not messages.release(0.0)
    assert messages.release(7_200.0)
    late = messages.take()
    assert late is not None
    assert (late.offset, messages.held) == (0, 0)
