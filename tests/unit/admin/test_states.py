"""The counts of states: exact up to a limit, then an estimate or a lower bound."""

from pillarbox.admin.states import STORED, EventState, StateCount, combined, up_to_limit
from pillarbox.core.message import Status
from pillarbox.core.statistics import COUNTED


def counts(*, pending: int | None, **stored: int) -> dict[EventState, StateCount]:
    by_state = {state: stored.get(state, 0) for state in STORED}
    return combined(by_state, {}, pending=pending, published=StateCount(0), dead_letters=0)


def test_a_message_in_flight_is_counted_once() -> None:
    stored = dict.fromkeys(STORED, 5)
    in_flight = {EventState.READY: 2, EventState.RETRYING: 1, EventState.BLOCKED: 1}
    found = combined(stored, in_flight, pending=30, published=StateCount(7), dead_letters=COUNTED + 1)
    assert [found[state].count for state in (EventState.READY, EventState.RETRYING, EventState.BLOCKED)] == [3, 4, 5]
    assert found[EventState.IN_FLIGHT] == StateCount(3)
    assert found[EventState.PUBLISHED] == StateCount(7)
    assert found[EventState.DEAD_LETTERED].text == "10,000+"
    assert list(found) == list(EventState)


def test_the_one_state_beyond_the_limit_has_the_rest_of_the_estimate() -> None:
    found = counts(pending=2_000_100, ready=COUNTED + 1, retrying=100)
    assert (found[EventState.READY].text, found[EventState.RETRYING].text) == ("~2,000,000", "100")


def test_an_outdated_estimate_is_never_below_what_was_counted() -> None:
    assert counts(pending=3, ready=COUNTED + 1)[EventState.READY] == StateCount(COUNTED + 1, "estimate")


def test_several_states_beyond_the_limit_are_lower_bounds() -> None:
    found = counts(pending=2_000_000, ready=COUNTED + 1, waiting=COUNTED + 1)
    assert {found[EventState.READY].text, found[EventState.WAITING].text} == {"10,000+"}
    assert counts(pending=None, ready=COUNTED + 1)[EventState.READY].text == "10,000+"


def test_a_count_within_the_limit_ignores_the_estimate() -> None:
    assert up_to_limit(COUNTED, 5_000_000) == StateCount(COUNTED)


def test_a_status_combines_several_states() -> None:
    assert [state.status for state in (EventState.WAITING, EventState.IN_FLIGHT)] == [Status.PENDING, Status.PROCESSING]
    assert EventState.BLOCKED.status is EventState.DEAD_LETTERED.status is Status.FAILED
    assert EventState.DEAD_LETTERED.label == "dead-lettered"
