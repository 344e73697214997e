"""Messages in flight: one at a time per queue, in order, and kept until they are settled."""

from pillarbox.core.message import Message
from pillarbox.relay.in_flight import InFlight, Item
from tests.unit.relay.messages import message


def item(number: int, key: str | None = "k", *, destination: str = "d", lane: int = 0, since: float = 0.0) -> Item:
    found: Message = message(id=number, event_id=f"e{number}", key=key, lane=lane)
    return Item(found, destination, waited=False, since=since)


def ids(items: list[Item]) -> list[int]:
    return [one.message.id for one in items]


def test_only_the_first_message_of_a_queue_is_sent() -> None:
    in_flight = InFlight()
    for number in (1, 2, 3):
        in_flight.add(item(number))
    assert ids(in_flight.sendable("d", 10)) == [1]
    assert in_flight.sendable("d", 10) == []


def test_the_next_message_is_sent_after_the_previous_is_confirmed() -> None:
    in_flight = InFlight()
    for number in (1, 2):
        in_flight.add(item(number))
    [first] = in_flight.sendable("d", 10)
    in_flight.confirmed(first)
    assert ids(in_flight.sendable("d", 10)) == [2]


def test_queues_and_messages_without_a_key_are_sent_concurrently() -> None:
    in_flight = InFlight()
    for number, key in ((1, "a"), (2, "b"), (3, None), (4, None), (5, "a")):
        in_flight.add(item(number, key))
    assert ids(in_flight.sendable("d", 10)) == [1, 2, 3, 4]


def test_each_destination_has_its_own_queues() -> None:
    in_flight = InFlight()
    in_flight.add(item(1, destination="x"))
    in_flight.add(item(2, destination="y"))
    assert ids(in_flight.sendable("x", 10)) == [1]
    assert ids(in_flight.sendable("y", 10)) == [2]


def test_a_late_message_is_inserted_at_its_position() -> None:
    in_flight = InFlight()
    in_flight.add(item(5))
    in_flight.add(item(3))
    assert ids(in_flight.sendable("d", 10)) == [3]


def test_a_stopped_queue_releases_its_waiting_messages() -> None:
    in_flight = InFlight()
    for number in (1, 2, 3):
        in_flight.add(item(number))
    [first] = in_flight.sendable("d", 10)
    followers = in_flight.stopped(first)
    assert ids(followers) == [2, 3]
    assert in_flight.sendable("d", 10) == []
    assert len(in_flight) == 3
    in_flight.forget([first, *followers])
    assert len(in_flight) == 0


def test_a_settled_message_stays_in_flight_until_it_is_removed() -> None:
    in_flight = InFlight()
    in_flight.add(item(1))
    [first] = in_flight.sendable("d", 10)
    in_flight.confirmed(first)
    assert list(in_flight.positions) == [(1, "")]
    in_flight.forget([first])
    assert list(in_flight.positions) == []


def test_lost_lanes_leave_nothing_in_flight() -> None:
    in_flight = InFlight()
    in_flight.add(item(1, "a", lane=1))
    in_flight.add(item(2, "b", lane=2))
    in_flight.drop_lanes({1})
    assert list(in_flight.positions) == [(2, "")]
    assert ids(in_flight.sendable("d", 10)) == [2]


def test_a_destination_is_sendable_only_while_a_queue_has_a_next_message() -> None:
    in_flight = InFlight()
    first, second, third = item(1), item(2), item(3, "other", lane=1)
    assert not in_flight.has_sendable("d")
    for one in (first, second, third):
        in_flight.add(one)
    assert in_flight.has_sendable("d")
    assert not in_flight.has_sendable("e")
    in_flight.drop_lanes({1})
    in_flight.forget([second])
    assert in_flight.has_sendable("d")
    in_flight.forget([first])
    assert not in_flight.has_sendable("d"), "its queues are still offered, and empty"
    in_flight.add(first)
    assert in_flight.sendable("d", 10) == [first]
    in_flight.add(second)
    assert not in_flight.has_sendable("d"), "the previous message is in flight"
    in_flight.confirmed(first)
    assert in_flight.has_sendable("d")


def test_long_held_messages_are_listed() -> None:
    in_flight = InFlight()
    in_flight.add(item(1, since=0.0))
    in_flight.add(item(2, "other", since=9.5))
    assert [(one.event_id, one.seconds) for one in in_flight.in_flight_longer_than(1.0, 10.0)] == [("e1", 10.0)]


def test_bytes_and_counts_match_the_messages_in_flight() -> None:
    in_flight = InFlight()
    items = [Item(message(id=n, key=f"{n}", payload=bytes(100), headers_json="{}"), "d", False, 0.0) for n in (1, 2, 3)]
    for one in items:
        in_flight.add(one)
    in_flight.keep(items[0])
    assert (in_flight.bytes, in_flight.count("d"), in_flight.count("e")) == (306, 3, 0)
    assert len(in_flight.sendable("d", 10, max_bytes=150)) == 2
    in_flight.forget(items[:1])
    assert (in_flight.bytes, in_flight.count("d")) == (204, 2)
    in_flight.drop_lanes({items[1].message.lane})
    assert (in_flight.bytes, in_flight.count("d"), in_flight.sendable("d", 10)) == (0, 0, [])


def test_an_item_of_a_lost_lane_neither_stops_nor_confirms_its_queue() -> None:
    in_flight = InFlight()
    first, second, third = (message(id=number, event_id=str(number), key="k") for number in (1, 2, 3))
    stale = Item(first, "d", waited=False, since=0)
    in_flight.add(stale)
    assert in_flight.sendable("d", 9) == [stale]
    in_flight.drop_lanes({first.lane})
    current = [Item(one, "d", waited=False, since=0) for one in (first, second, third)]
    for item in current:
        in_flight.add(item)
    assert in_flight.sendable("d", 9) == [current[0]]
    assert (in_flight.holds(stale), in_flight.sends(stale), in_flight.stopped(stale)) == (False, False, [])
    in_flight.confirmed(stale)
    in_flight.forget([stale])
    assert in_flight.sendable("d", 9) == []
    assert in_flight.sends(current[0])
    assert in_flight.stopped(current[0]) == current[1:]


def pipelined(in_flight: InFlight, most: int = 10) -> list[Item]:
    return in_flight.sendable("d", most, pipelined=True)


def test_pipelined_messages_of_a_queue_are_sent_in_order() -> None:
    in_flight = InFlight()
    for number in (3, 1, 2):
        in_flight.add(item(number))
    first = pipelined(in_flight, 2)
    assert ids(first) == [1, 2]
    in_flight.add(item(4))
    in_flight.confirmed(first[0])
    assert pipelined(in_flight) == []
    in_flight.confirmed(first[1])
    assert ids(pipelined(in_flight)) == [3, 4]


def test_pipelined_queues_share_a_batch() -> None:
    in_flight = InFlight()
    for number in range(20):
        in_flight.add(item(number, "hot"))
    for number in (20, 21):
        in_flight.add(item(number, f"calm {number}"))
    going = ids(pipelined(in_flight, 9))
    assert going[:3] == [0, 1, 2]
    assert {20, 21} < set(going)
    assert len(going) <= 9


def test_a_pipelined_failure_stops_its_queue_and_later_results_are_kept() -> None:
    in_flight = InFlight()
    for number in (1, 2, 3, 4):
        in_flight.add(item(number))
    first, second, third = pipelined(in_flight, 3)
    in_flight.confirmed(first)
    assert ids(in_flight.stopped(second)) == [4]
    assert in_flight.sends(third)
    assert in_flight.accepted([second, third]) == [third]
    assert not in_flight.has(third.queue)


def test_pipelined_bytes_are_bounded_except_for_the_first_message() -> None:
    in_flight = InFlight()
    for number in (1, 2, 3):
        in_flight.add(item(number))
    size = item(1).size
    assert ids(in_flight.sendable("d", 10, max_bytes=1, pipelined=True)) == [1]
    in_flight = InFlight()
    for number in (1, 2, 3):
        in_flight.add(item(number))
    assert ids(in_flight.sendable("d", 10, max_bytes=2 * size, pipelined=True)) == [1, 2]
