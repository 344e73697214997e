"""A look that began before a message was known to wait must not let others past it."""

from pillarbox.relay.admission import Stops
from pillarbox.relay.in_flight import queue_of
from tests.unit.relay.messages import message

FIRST = message(id=1, event_id="a", key="k")
LATER = message(id=2, event_id="b", key="k")
LINE = queue_of(FIRST, "d")


def test_until_it_is_written_nothing_of_the_line_comes() -> None:
    stops = Stops()
    stops.looks = 7
    stops.stop(LINE)
    assert stops.hold_back(LATER, "d", 8)


def test_looks_begun_before_the_commit_do_not_know() -> None:
    stops = Stops()
    stops.stop(LINE)
    stops.looks = 5
    stops.written(LINE)
    assert stops.hold_back(LATER, "d", 5)
    assert not stops.hold_back(LATER, "d", 6)


def test_a_stop_of_the_whole_key_holds_every_destination() -> None:
    stops = Stops()
    stops.stop(queue_of(FIRST, ""))
    assert stops.hold_back(LATER, "anywhere", 1)


def test_other_lines_and_messages_without_a_key_are_free() -> None:
    stops = Stops()
    stops.stop(LINE)
    assert not stops.hold_back(LATER, "elsewhere", 1)
    assert not stops.hold_back(message(id=3, event_id="k", key=None), "d", 1)


def test_a_message_of_a_later_look_does_not_open_the_line_to_an_earlier_look_of_the_same_round() -> None:
    stops = Stops()
    stops.stop(LINE)
    stops.looks = 5
    stops.written(LINE)
    assert not stops.hold_back(message(id=0, event_id="straggler", key="k"), "d", 6)
    assert stops.hold_back(LATER, "d", 5)


def test_a_decision_that_is_written_does_not_open_the_line_while_another_is_not() -> None:
    stops = Stops()
    stops.stop(LINE)
    stops.stop(LINE)
    stops.written(LINE)
    stops.let_go(LINE)
    stops.begin_round()
    stops.looks += 1
    assert stops.hold_back(LATER, "d", stops.looks)
    stops.written(LINE)
    assert not stops.hold_back(LATER, "d", stops.looks + 1)


def test_looks_begun_before_a_message_was_let_go_of_left_it_out() -> None:
    stops = Stops()
    stops.looks = 5
    stops.let_go(LINE)
    assert stops.hold_back(LATER, "d", 5)
    assert not stops.hold_back(LATER, "d", 6)


def test_a_round_forgets_what_every_look_of_it_knows() -> None:
    stops = Stops()
    stops.stop(LINE)
    stops.looks = 5
    stops.written(LINE)
    stops.begin_round()
    assert not stops.hold_back(LATER, "d", 5)


def test_nothing_is_unwritten_once_the_relay_ended() -> None:
    stops = Stops()
    stops.stop(LINE)
    stops.written(queue_of(FIRST, "elsewhere"))
    stops.clear()
    for destination in ("d", "elsewhere"):
        assert not stops.hold_back(LATER, destination, 0)
