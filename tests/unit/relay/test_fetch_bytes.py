"""The byte budget of a round: two fetches in addition to the messages in flight, and oversized messages alone."""

from pillarbox.core.fetch import MAX_BYTES, Fetched, Ready
from pillarbox.core.message import Message
from pillarbox.relay.fetch import MAX_ROWS, ByteBudget, OversizedMessage
from pillarbox.relay.in_flight import InFlight, Item
from pillarbox.relay.placement import FetchedMessage
from tests.unit.relay.messages import message

QUERY = Ready(lanes=[0])
MOST = 800
PER_FETCH = MOST // 4


def sized(size: int, number: int = 1) -> Message:
    return message(id=number, event_id=f"e{number}", key=f"{number}", payload=bytes(size - 2), headers_json="{}")


def budget(*in_flight: int, most: int = MOST) -> ByteBudget:
    already = InFlight()
    for number, size in enumerate(in_flight):
        already.add(Item(sized(size, number), "d", waited=False, since=0))
    return ByteBudget(most, already)


def fetched(*sizes: int, left_out: int | None = None) -> Fetched:
    found = Fetched(sized(size, number) for number, size in enumerate(sizes))
    found.left_out = None if left_out is None else message(lane=left_out)
    return found


def bring(to: ByteBudget, found: Fetched, *, waited: bool) -> None:
    to.brought(QUERY, found, sum(one.size for one in found), waited=waited)


def test_a_fetch_is_limited_to_a_quarter_of_the_byte_budget() -> None:
    assert budget().per_fetch == PER_FETCH
    assert budget(most=3).per_fetch == 1
    assert budget(most=100 * MAX_BYTES).per_fetch == MAX_BYTES


def test_a_round_starts_only_if_two_fetches_fit_the_budget() -> None:
    assert budget(MOST - 2 * PER_FETCH).begin()
    assert not budget(MOST - 2 * PER_FETCH + 1).begin()
    assert budget().begin()
    assert budget(most=1).begin()
    assert not budget(2, most=1).begin()


def test_an_oversized_message_waits_until_nothing_is_in_flight() -> None:
    for waits, begins in ((budget(2), False), (budget(), True)):
        waits.oversized = OversizedMessage(Ready, 0, "")
        assert waits.begin() is begins


def test_every_round_starts_with_the_full_budget() -> None:
    round_by_round = budget()
    for _ in range(2):
        assert round_by_round.begin()
        assert (round_by_round.left, round_by_round.alone) == (PER_FETCH, True)
        bring(round_by_round, fetched(50), waited=False)
        assert (round_by_round.left, round_by_round.alone) == (PER_FETCH, False)
        bring(round_by_round, fetched(60), waited=True)
        assert (round_by_round.left, round_by_round.alone) == (PER_FETCH - 60, False)


def test_no_oversized_message_is_fetched_while_others_are_in_flight() -> None:
    assert not budget(2).alone


def test_the_next_round_fetches_the_first_oversized_message() -> None:
    meeting = budget()
    bring(meeting, fetched(50, left_out=3), waited=False)
    assert meeting.oversized is None, "it comes first with the next fetch"
    bring(meeting, fetched(left_out=4), waited=False)
    bring(meeting, fetched(left_out=5), waited=False)
    assert meeting.oversized == OversizedMessage(Ready, 4, "")


def test_the_row_limit_is_about_twice_the_number_that_fitted_lately() -> None:
    weighing = budget()
    assert weighing.rows == MAX_ROWS
    asked = []
    for found in (fetched(*[2] * 10, left_out=0), fetched(left_out=0), fetched(), fetched(*[2] * 8)):
        bring(weighing, found, waited=False)
        asked.append(weighing.rows)
    assert asked == [20, 4, 8, 16]
    for _ in range(40):
        bring(weighing, fetched(), waited=False)
    assert weighing.rows == MAX_ROWS


def test_messages_are_admitted_as_far_as_they_fit_and_at_least_one() -> None:
    def fitting(of: ByteBudget, *sizes: int) -> int:
        found = fetched(*sizes)
        bring(of, found, waited=False)
        return of.fitting([FetchedMessage(one, ("d",), 1, waited=False, epoch=1, size=one.size) for one in found])

    assert fitting(budget(), 400, 400) == 2
    assert fitting(budget(), 400, 401) == 1
    assert fitting(budget(2), 400, 398) == 2
    assert fitting(budget(2), 400, 399) == 1
    assert fitting(budget(), 10 * MOST, 2) == 1
    assert fitting(budget(2), 10 * MOST) == 0
