"""A fetch that began before a message was known to wait must not let later messages of its key overtake it."""

from pillarbox.relay.fetch_loop import FetchBarrier
from pillarbox.relay.in_flight import queue_of
from tests.unit.relay.messages import message

FIRST = message(id=1, event_id="a", key="k")
LATER = message(id=2, event_id="b", key="k")
QUEUE = queue_of(FIRST, "d")


def test_no_message_of_the_queue_is_admitted_until_the_decision_is_written() -> None:
    barrier = FetchBarrier()
    barrier.fetches = 7
    barrier.stop(QUEUE)
    assert barrier.holds_back(LATER, "d", 8)


def test_fetches_begun_before_the_commit_are_barred() -> None:
    barrier = FetchBarrier()
    barrier.stop(QUEUE)
    barrier.fetches = 5
    barrier.written(QUEUE)
    assert barrier.holds_back(LATER, "d", 5)
    assert not barrier.holds_back(LATER, "d", 6)


def test_a_barrier_of_a_key_applies_to_every_destination() -> None:
    barrier = FetchBarrier()
    barrier.stop(queue_of(FIRST, ""))
    assert barrier.holds_back(LATER, "anywhere", 1)


def test_other_queues_and_messages_without_a_key_are_admitted() -> None:
    barrier = FetchBarrier()
    barrier.stop(QUEUE)
    assert not barrier.holds_back(LATER, "elsewhere", 1)
    assert not barrier.holds_back(message(id=3, event_id="k", key=None), "d", 1)


def test_a_later_fetch_does_not_lift_the_barrier_for_an_earlier_one() -> None:
    barrier = FetchBarrier()
    barrier.stop(QUEUE)
    barrier.fetches = 5
    barrier.written(QUEUE)
    assert not barrier.holds_back(message(id=0, event_id="straggler", key="k"), "d", 6)
    assert barrier.holds_back(LATER, "d", 5)


def test_a_written_decision_does_not_lift_the_barrier_of_an_unwritten_one() -> None:
    barrier = FetchBarrier()
    barrier.stop(QUEUE)
    barrier.stop(QUEUE)
    barrier.written(QUEUE)
    barrier.released(QUEUE)
    barrier.begin_round()
    barrier.fetches += 1
    assert barrier.holds_back(LATER, "d", barrier.fetches)
    barrier.written(QUEUE)
    assert not barrier.holds_back(LATER, "d", barrier.fetches + 1)


def test_fetches_begun_before_a_release_do_not_contain_the_message() -> None:
    barrier = FetchBarrier()
    barrier.fetches = 5
    barrier.released(QUEUE)
    assert barrier.holds_back(LATER, "d", 5)
    assert not barrier.holds_back(LATER, "d", 6)


def test_a_round_drops_barriers_that_all_its_fetches_know() -> None:
    barrier = FetchBarrier()
    barrier.stop(QUEUE)
    barrier.fetches = 5
    barrier.written(QUEUE)
    barrier.begin_round()
    assert not barrier.holds_back(LATER, "d", 5)


def test_a_stopped_relay_has_no_unwritten_decisions() -> None:
    barrier = FetchBarrier()
    barrier.stop(QUEUE)
    barrier.written(queue_of(FIRST, "elsewhere"))
    barrier.clear()
    for destination in ("d", "elsewhere"):
        assert not barrier.holds_back(LATER, destination, 0)
