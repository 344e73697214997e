"""Times need a time zone and a supported year; versions are whole numbers from 1."""

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from pillarbox import Event, RecordError

TIMES = ["occurred_at", "available_at"]


@pytest.mark.parametrize("field", TIMES)
def test_a_time_without_time_zone_is_rejected(field: str) -> None:
    fields: dict[str, Any] = {field: datetime(2026, 11, 15, 8, 0)}
    with pytest.raises(RecordError, match=f"{field} has no time zone") as caught:
        Event("order.placed", {}, **fields)
    assert caught.value.field == field


@pytest.mark.parametrize("field", TIMES)
@pytest.mark.parametrize("value", ["2026-11-15T08:00:00Z", 1763193600, date(2026, 11, 15)], ids=str)
def test_only_a_datetime_is_accepted(field: str, value: object) -> None:
    fields: dict[str, Any] = {field: value}
    with pytest.raises(RecordError, match=f"{field} must be a datetime") as caught:
        Event("order.placed", {}, **fields)
    assert caught.value.field == field


@pytest.mark.parametrize("field", TIMES)
@pytest.mark.parametrize(
    "value",
    [
        datetime.min.replace(tzinfo=timezone(timedelta(hours=1))),
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))),
        datetime.min.replace(tzinfo=UTC),
        datetime.max.replace(tzinfo=UTC),
    ],
    ids=["before the first", "after the last", "the first", "the last"],
)
def test_times_at_the_end_of_the_calendar_are_rejected(field: str, value: datetime) -> None:
    fields: dict[str, Any] = {field: value}
    with pytest.raises(RecordError, match="outside the supported range"):
        Event("order.placed", {}, **fields)


def test_a_time_keeps_its_time_zone() -> None:
    berlin = datetime(2026, 11, 15, 9, 0, tzinfo=timezone(timedelta(hours=1)))
    event = Event("order.placed", {}, occurred_at=berlin, available_at=berlin.astimezone(UTC))
    assert event.occurred_at is berlin
    assert event.available_at == berlin


@pytest.mark.parametrize("version", [0, -1, 2**31, 1.5, "2", True])
def test_a_version_is_a_whole_number_from_one(version: Any) -> None:
    with pytest.raises(RecordError, match="an integer of 1 or more") as caught:
        Event("order.placed", {}, schema_version=version)
    assert caught.value.field == "schema_version"
