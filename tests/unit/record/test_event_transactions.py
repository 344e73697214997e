"""A transaction that appends rows itself is used instead of SQL, by record and arecord, with the same checks."""

from collections.abc import Sequence

import pytest

from pillarbox import DuplicateEventError, Event, Outbox, RecordError
from pillarbox.core.rows import EventRow


class Rows:
    """A minimal transaction."""

    def __init__(self) -> None:
        self.appended: list[EventRow] = []
        self.ignored: list[bool] = []

    def append_rows(self, rows: Sequence[EventRow], *, ignore_duplicates: bool) -> None:
        self.appended += rows
        self.ignored.append(ignore_duplicates)


async def test_record_and_arecord_append_in_order() -> None:
    rows = Rows()
    assert Outbox().record(rows, Event("a", {}, event_id="1"), Event("b", {}, event_id="2")) == ["1", "2"]
    assert await Outbox().arecord(rows, Event("c", {}, event_id="3")) == ["3"]
    assert [(row.event_id, row.event_type) for row in rows.appended] == [("1", "a"), ("2", "b"), ("3", "c")]


class Appended:
    """A minimal transaction on a driver that is awaited."""

    def __init__(self) -> None:
        self.appended: list[EventRow] = []

    async def aappend_rows(self, rows: Sequence[EventRow], *, ignore_duplicates: bool) -> None:
        self.appended += rows


async def test_arecord_awaits_a_transaction_that_is_awaited() -> None:
    rows = Appended()
    assert await Outbox().arecord(rows, Event("a", {}, event_id="1")) == ["1"]
    assert [row.event_id for row in rows.appended] == ["1"]


async def test_no_events_append_nothing() -> None:
    rows = Rows()
    assert Outbox().record(rows) == await Outbox().arecord(rows) == []
    assert rows.ignored == []


def test_ignore_duplicates_is_passed_on() -> None:
    rows = Rows()
    Outbox().record(rows, Event("a", {}))
    Outbox(duplicate="ignore").record(rows, Event("a", {}))
    assert rows.ignored == [False, True]


def test_a_duplicate_within_one_call_is_found_before_the_append() -> None:
    rows = Rows()
    twice = Event("a", {}, event_id="evt-001")
    with pytest.raises(DuplicateEventError, match="evt-001 occurs twice in one call"):
        Outbox().record(rows, twice, twice)
    with pytest.raises(RecordError, match="payload"):
        Outbox().record(rows, Event("a", {}), Event("a", "text"))
    assert rows.appended == []
