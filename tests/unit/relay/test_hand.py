"""What is in hand: one at a time per line, in order, and nothing forgotten before it is settled."""

from pillarbox.core.message import Message
from pillarbox.relay.hand import Hand, Item
from tests.unit.relay.messages import message


def item(number: int, key: str | None = "k", *, destination: str = "d", lane: int = 0, since: float = 0.0) -> Item:
    found: Message = message(id=number, event_id=f"e{number}", key=key, lane=lane)
    return Item(found, destination, waited=False, since=since)


def ids(items: list[Item]) -> list[int]:
    return [one.message.id for one in items]


def test_only_the_first_of_a_line_may_go() -> None:
    hand = Hand()
    for number in (1, 2, 3):
        hand.add(item(number))
    assert ids(hand.sendable("d", 10)) == [1]
    assert hand.sendable("d", 10) == []


def test_the_next_may_go_once_the_one_before_is_confirmed() -> None:
    hand = Hand()
    for number in (1, 2):
        hand.add(item(number))
    [first] = hand.sendable("d", 10)
    hand.confirmed(first)
    assert ids(hand.sendable("d", 10)) == [2]


def test_lines_and_messages_without_a_key_go_side_by_side() -> None:
    hand = Hand()
    for number, key in ((1, "a"), (2, "b"), (3, None), (4, None), (5, "a")):
        hand.add(item(number, key))
    assert ids(hand.sendable("d", 10)) == [1, 2, 3, 4]


def test_a_destination_has_lines_of_its_own() -> None:
    hand = Hand()
    hand.add(item(1, destination="x"))
    hand.add(item(2, destination="y"))
    assert ids(hand.sendable("x", 10)) == [1]
    assert ids(hand.sendable("y", 10)) == [2]


def test_a_message_that_comes_late_takes_its_place() -> None:
    hand = Hand()
    hand.add(item(5))
    hand.add(item(3))
    assert ids(hand.sendable("d", 10)) == [3]


def test_a_stopped_line_lets_go_of_those_behind() -> None:
    hand = Hand()
    for number in (1, 2, 3):
        hand.add(item(number))
    [first] = hand.sendable("d", 10)
    followers = hand.stopped(first)
    assert ids(followers) == [2, 3]
    assert hand.sendable("d", 10) == []
    assert len(hand) == 3
    hand.forget([first, *followers])
    assert len(hand) == 0


def test_what_is_settled_stays_in_hand_until_it_is_forgotten() -> None:
    hand = Hand()
    hand.add(item(1))
    [first] = hand.sendable("d", 10)
    hand.confirmed(first)
    assert list(hand.places) == [(1, "")]
    hand.forget([first])
    assert list(hand.places) == []


def test_lost_lanes_leave_nothing() -> None:
    hand = Hand()
    hand.add(item(1, "a", lane=1))
    hand.add(item(2, "b", lane=2))
    hand.drop_lanes({1})
    assert list(hand.places) == [(2, "")]
    assert ids(hand.sendable("d", 10)) == [2]


def test_a_destination_has_something_to_send_only_while_a_line_has_its_next_message() -> None:
    hand = Hand()
    first, second, third = item(1), item(2), item(3, "other", lane=1)
    assert not hand.has_sendable("d")
    for one in (first, second, third):
        hand.add(one)
    assert hand.has_sendable("d")
    assert not hand.has_sendable("e")
    hand.drop_lanes({1})
    hand.forget([second])
    assert hand.has_sendable("d")
    hand.forget([first])
    assert not hand.has_sendable("d"), "its lines are still offered, and empty"
    hand.add(first)
    assert hand.sendable("d", 10) == [first]
    hand.add(second)
    assert not hand.has_sendable("d"), "the one before is on its way"
    hand.confirmed(first)
    assert hand.has_sendable("d")


def test_what_is_held_for_long_is_shown() -> None:
    hand = Hand()
    hand.add(item(1, since=0.0))
    hand.add(item(2, "other", since=9.5))
    assert [(one.event_id, one.seconds) for one in hand.held_longer_than(1.0, 10.0)] == [("e1", 10.0)]


def test_bytes_and_counts_are_those_of_what_is_in_flight() -> None:
    hand = Hand()
    items = [Item(message(id=n, key=f"{n}", payload=bytes(100), headers_json="{}"), "d", False, 0.0) for n in (1, 2, 3)]
    for one in items:
        hand.add(one)
    hand.keep(items[0])
    assert (hand.bytes, hand.count("d"), hand.count("e")) == (306, 3, 0)
    assert len(hand.sendable("d", 10, most_bytes=150)) == 2
    hand.forget(items[:1])
    assert (hand.bytes, hand.count("d")) == (204, 2)
    hand.drop_lanes({items[1].message.lane})
    assert (hand.bytes, hand.count("d"), hand.sendable("d", 10)) == (0, 0, [])


def test_an_item_from_before_its_lane_was_lost_neither_stops_nor_confirms_its_queue() -> None:
    hand = Hand()
    first, second, third = (message(id=number, event_id=str(number), key="k") for number in (1, 2, 3))
    stale = Item(first, "d", waited=False, since=0)
    hand.add(stale)
    assert hand.sendable("d", 9) == [stale]
    hand.drop_lanes({first.lane})
    current = [Item(one, "d", waited=False, since=0) for one in (first, second, third)]
    for item in current:
        hand.add(item)
    assert hand.sendable("d", 9) == [current[0]]
    assert (hand.holds(stale), hand.sends(stale), hand.stopped(stale)) == (False, False, [])
    hand.confirmed(stale)
    hand.forget([stale])
    assert hand.sendable("d", 9) == []
    assert hand.sends(current[0])
    assert hand.stopped(current[0]) == current[1:]


def pipelined(hand: Hand, most: int = 10) -> list[Item]:
    return hand.sendable("d", most, pipelined=True)


def test_pipelined_several_of_a_line_go_in_order_and_the_next_after_all_were_answered() -> None:
    hand = Hand()
    for number in (3, 1, 2):
        hand.add(item(number))
    first = pipelined(hand, 2)
    assert ids(first) == [1, 2]
    hand.add(item(4))
    hand.confirmed(first[0])
    assert pipelined(hand) == []
    hand.confirmed(first[1])
    assert ids(pipelined(hand)) == [3, 4]


def test_pipelined_lines_share_a_batch() -> None:
    hand = Hand()
    for number in range(20):
        hand.add(item(number, "hot"))
    for number in (20, 21):
        hand.add(item(number, f"calm {number}"))
    going = ids(pipelined(hand, 9))
    assert going[:3] == [0, 1, 2]
    assert {20, 21} < set(going)
    assert len(going) <= 9


def test_pipelined_one_that_fails_stops_its_line_and_those_sent_behind_it_keep_their_answers() -> None:
    hand = Hand()
    for number in (1, 2, 3, 4):
        hand.add(item(number))
    first, second, third = pipelined(hand, 3)
    hand.confirmed(first)
    assert ids(hand.stopped(second)) == [4]
    assert hand.sends(third)
    assert hand.accepted([second, third]) == [third]
    assert not hand.has(third.line)


def test_pipelined_bytes_are_bounded_and_the_first_goes_whatever_its_size() -> None:
    hand = Hand()
    for number in (1, 2, 3):
        hand.add(item(number))
    size = item(1).size
    assert ids(hand.sendable("d", 10, most_bytes=1, pipelined=True)) == [1]
    hand = Hand()
    for number in (1, 2, 3):
        hand.add(item(number))
    assert ids(hand.sendable("d", 10, most_bytes=2 * size, pipelined=True)) == [1, 2]
