"""A page merges the rows of several tables, up to the point to which each table was scanned."""

from datetime import UTC, datetime, timedelta

import pytest

from pillarbox.admin.dead_letters import DeadLetterFilter, FoundDeadLetter, ListedDeadLetter, dead_letter_page
from pillarbox.admin.listing import (
    ROWS_SCANNED,
    EventFilter,
    FoundEvent,
    ListedEvent,
    Position,
    event_page,
    join_aggregate,
    rows_to_scan,
    split_aggregate,
)
from pillarbox.admin.states import EventState
from pillarbox.core.errors import ConfigurationError
from pillarbox.core.message import Status

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def found(number: int, *, wanted: bool = True, edge: bool = False) -> FoundEvent:
    at = NOON + timedelta(seconds=number)
    event = ListedEvent(at, number, "", str(number), EventState.READY, "t", None, 0, 0, None, None, None, None)
    return FoundEvent(event, wanted, edge)


def dead_letter(number: int, *, wanted: bool = True, edge: bool = False) -> FoundDeadLetter:
    return FoundDeadLetter(
        ListedDeadLetter(number, str(number), "", "t", None, "no", 1, NOON, NOON, NOON), wanted, edge
    )


def test_rows_of_several_tables_are_merged_in_one_order() -> None:
    page = event_page([found(1), found(5), found(3), found(4)], limit=10)
    assert [event.id for event in page.events] == [5, 4, 3, 1]
    assert page.after is None


def test_the_page_after_a_full_page_starts_after_its_last_event() -> None:
    page = event_page([found(1), found(2), found(3)], limit=2)
    assert [event.id for event in page.events] == [3, 2]
    assert page.after == found(2).event.position


def test_a_page_without_further_rows_is_the_last() -> None:
    assert event_page([found(1), found(2)], limit=2).after is None


def test_no_row_beyond_the_scanned_part_of_a_table_is_shown() -> None:
    # Another table may have rows between 3 and 1 that were not scanned.
    page = event_page([found(4), found(3, wanted=False, edge=True), found(1)], limit=10)
    assert [event.id for event in page.events] == [4]
    assert page.after == found(3).event.position


def test_a_matching_row_at_the_end_of_the_scanned_part_is_shown() -> None:
    page = event_page([found(4), found(3, edge=True), found(1)], limit=10)
    assert [event.id for event in page.events] == [4, 3]
    assert page.after == found(3).event.position


def test_an_empty_page_can_have_a_next_page() -> None:
    assert event_page([found(3, wanted=False, edge=True)], limit=10) == ([], found(3).event.position)
    assert dead_letter_page([dead_letter(3, wanted=False, edge=True)], limit=10) == ([], 3)


def test_pages_of_dead_letters_follow_the_same_rules() -> None:
    full = dead_letter_page([dead_letter(3), dead_letter(2), dead_letter(1)], limit=2)
    assert ([x.id for x in full.dead_letters], full.before) == ([3, 2], 2)
    assert dead_letter_page([dead_letter(2), dead_letter(1)], limit=2).before is None
    cut = dead_letter_page([dead_letter(3), dead_letter(2, edge=True)], limit=5)
    assert ([x.id for x in cut.dead_letters], cut.before) == ([3, 2], 2)


def test_an_indexed_filter_needs_no_scan() -> None:
    assert rows_to_scan(50, asked=0, answered=False) == rows_to_scan(50, asked=1, answered=True) == 51
    assert rows_to_scan(50, asked=1, answered=False) == rows_to_scan(50, asked=2, answered=True) == ROWS_SCANNED
    assert rows_to_scan(ROWS_SCANNED, asked=1, answered=False) == ROWS_SCANNED + 1


@pytest.mark.parametrize(
    ("wanted", "tables"),
    [
        (EventFilter(), (True, True, True)),
        (EventFilter(status=Status.PENDING), (True, False, False)),
        (EventFilter(status=Status.PROCESSING), (True, False, False)),
        (EventFilter(status=Status.PUBLISHED), (False, True, False)),
        (EventFilter(status=Status.FAILED), (True, False, True)),
        (EventFilter(state=EventState.RETRYING), (True, False, False)),
        (EventFilter(state=EventState.BLOCKED), (True, False, False)),
        (EventFilter(state=EventState.PUBLISHED), (False, True, False)),
        (EventFilter(state=EventState.DEAD_LETTERED), (False, False, True)),
    ],
)
def test_a_filter_selects_its_tables(wanted: EventFilter, tables: tuple[bool, ...]) -> None:
    assert (wanted.waiting, wanted.delivered, wanted.dead) == tables


def test_a_dead_letter_filter_selects_its_index() -> None:
    assert DeadLetterFilter().index is None
    assert DeadLetterFilter(event_type="t", error="no").index == "type"
    assert DeadLetterFilter(event_type="t", key="k").index == "key"
    assert DeadLetterFilter(event_id="e", key="k").index == "event"


@pytest.mark.parametrize("destination", ["", "orders", "a,b c/é%"])
def test_a_position_can_be_encoded_and_decoded(destination: str) -> None:
    position = Position(NOON, 7, destination)
    assert Position.parse(str(position)) == position
    assert " " not in str(position)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "7",
        "yesterday,7,x",
        "2026-11-30T12:00:00,7,x",
        "2026-11-30T12:00:00Z,x,y",
        "a,b",
        "0001-01-01T00:00:00+14:00,7,x",
        "2026-11-30T12:00:00Z,7,%00",
    ],
)
def test_an_invalid_position_is_rejected(text: str) -> None:
    with pytest.raises(ConfigurationError, match="not a position"):
        Position.parse(text)


@pytest.mark.parametrize(
    ("text", "kind", "one"),
    [
        ("ORDER", "ORDER", None),
        ("ORDER:42", "ORDER", "42"),
        ("ORDER:a:b", "ORDER", "a:b"),
        (r"shop\:ORDER:42", "shop:ORDER", "42"),
        (r"App\Order:42", r"App\Order", "42"),
        (r"ORDER:a\:b", "ORDER", r"a\:b"),
        (r"C\\:1", "C\\", "1"),
        (r"C\\\\:1", r"C\\", "1"),
        (r"C\\\:D:1", r"C\:D", "1"),
        (r"App\\Order:42", r"App\Order", "42"),
        (r"ORDER\:", "ORDER:", None),
        (r"ORDER\::42", "ORDER:", "42"),
        ("C\\", "C\\", None),
    ],
)
def test_an_aggregate_is_a_type_and_an_id(text: str, kind: str, one: str | None) -> None:
    assert split_aggregate(text) == (kind, one)
    assert EventFilter(aggregate=text).aggregate_parts == (kind, one)


@pytest.mark.parametrize("kind", ["ORDER", "ORDER:", "C\\", r"a\:b", r"a\\b", ":", "\\:\\", r"App\Order"])
@pytest.mark.parametrize("one", ["42", ":", "a:b", r"a\:b", "\\"])
def test_every_aggregate_can_be_named(kind: str, one: str) -> None:
    assert split_aggregate(join_aggregate(kind, one)) == (kind, one)


@pytest.mark.parametrize("text", ["", ":", ":42", "ORDER:", "C\\\\:"])
def test_an_empty_part_of_an_aggregate_is_refused(text: str) -> None:
    """Otherwise a script with an unset variable would discard all events."""
    with pytest.raises(ConfigurationError, match="is not an aggregate"):
        EventFilter(aggregate=text)
