"""Time ranges: SQLite's clock has milliseconds, the times of a range can be more precise."""

import sqlite3
from datetime import UTC, datetime, timedelta, timezone

import pytest

from pillarbox.testing.conformance.lane_owner import Owner

RECORDED = datetime(2026, 5, 4, 3, 2, 1, 123_000, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


@pytest.fixture
def recorded(owner: Owner, sql: sqlite3.Connection) -> None:
    sql.execute(
        "INSERT INTO outbox_message (event_type, payload, recorded_at) VALUES ('t', '', '2026-05-04T03:02:01.123Z')"
    )


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize(
    ("after", "comes"), [(RECORDED - MICROSECOND, True), (RECORDED, True), (RECORDED + MICROSECOND, False)]
)
async def test_a_range_can_start_between_two_milliseconds(owner: Owner, after: datetime, comes: bool) -> None:
    assert bool(await owner.ready(recorded_after=after)) is comes
    assert bool(await owner.ready(recorded_before=after)) is not comes


@pytest.mark.usefixtures("recorded")
async def test_a_range_can_have_any_time_zone(owner: Owner) -> None:
    local = RECORDED.astimezone(timezone(timedelta(hours=-11)))
    assert await owner.ready(recorded_after=local) != []
    assert await owner.ready(recorded_before=local) == []
