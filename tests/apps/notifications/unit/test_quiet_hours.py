"""Quiet hours in the time zone of a user: over midnight, and at clock changes."""

from datetime import UTC, datetime, time
from zoneinfo import ZoneInfo

import pytest

from apps.notifications.orchestration.quiet_hours import QuietHours

ROME, NEW_YORK, UTC_ZONE = ZoneInfo("Europe/Rome"), ZoneInfo("America/New_York"), ZoneInfo("UTC")
NIGHT = QuietHours(starts=time(22), ends=time(7))
NOON = QuietHours(starts=time(13), ends=time(15))


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("now", "end"),
    [
        ("2026-11-10T12:59:59.999999", None),
        ("2026-11-10T13:00", "2026-11-10T15:00"),
        ("2026-11-10T14:59:59.999999", "2026-11-10T15:00"),
        ("2026-11-10T15:00", None),
    ],
)
def test_quiet_hours_include_the_start_and_exclude_the_end(now: str, end: str | None) -> None:
    assert NOON.end(at(now), UTC_ZONE) == (None if end is None else at(end))


@pytest.mark.parametrize(
    ("now", "end"),
    [
        ("2026-11-10T21:59", None),
        ("2026-11-10T22:00", "2026-11-11T07:00"),
        ("2026-11-10T23:59:59", "2026-11-11T07:00"),
        ("2026-11-11T00:00", "2026-11-11T07:00"),
        ("2026-11-11T06:59", "2026-11-11T07:00"),
        ("2026-11-11T07:00", None),
        ("2026-12-31T23:00", "2027-01-01T07:00"),
    ],
)
def test_quiet_hours_can_cross_midnight(now: str, end: str | None) -> None:
    assert NIGHT.end(at(now), UTC_ZONE) == (None if end is None else at(end))


def test_quiet_hours_use_the_time_zone_of_the_user() -> None:
    now = at("2026-11-10T22:30")  # 23:30 in Rome, 17:30 in New York
    assert NIGHT.end(now, ROME) == at("2026-11-11T06:00")
    assert NIGHT.end(now, NEW_YORK) is None
    later = at("2026-11-11T04:00")  # 05:00 in Rome, 23:00 of the day before in New York
    assert NIGHT.end(later, ROME) == at("2026-11-11T06:00")
    assert NIGHT.end(later, NEW_YORK) == at("2026-11-11T12:00")


def test_a_spring_clock_change_shortens_the_night() -> None:
    # Rome, 29 March 2026: 02:00 becomes 03:00, and 07:00 is 05:00 in UTC.
    assert NIGHT.end(at("2026-03-28T22:00"), ROME) == at("2026-03-29T05:00")


def test_an_autumn_clock_change_lengthens_the_night() -> None:
    # Rome, 25 October 2026: 03:00 becomes 02:00, and 07:00 is 06:00 in UTC.
    assert NIGHT.end(at("2026-10-24T21:00"), ROME) == at("2026-10-25T06:00")


def test_a_skipped_end_time_is_an_hour_later() -> None:
    until_half_past_two = QuietHours(starts=time(1), ends=time(2, 30))
    assert until_half_past_two.end(at("2026-03-29T00:30"), ROME) == at("2026-03-29T01:30")
    assert until_half_past_two.end(at("2026-03-29T01:30"), ROME) is None  # 03:30


def test_a_repeated_end_time_is_the_next_one() -> None:
    until_half_past_two = QuietHours(starts=time(1), ends=time(2, 30))
    assert until_half_past_two.end(at("2026-10-25T00:10"), ROME) == at("2026-10-25T00:30")  # 02:10, for the first time
    assert until_half_past_two.end(at("2026-10-25T01:10"), ROME) == at("2026-10-25T01:30")  # 02:10, for the second time


def test_the_end_is_always_in_the_future() -> None:
    for hour in range(24):
        for ends in (0, 2, 3, 7, 23):
            quiet = QuietHours(starts=time(22), ends=time(ends, 30))
            for day in ("2026-03-29", "2026-10-25", "2026-11-10"):
                now = at(f"{day}T{hour:02}:15")
                end = quiet.end(now, ROME)
                assert end is None or end > now


def test_equal_start_and_end_mean_no_quiet_hours() -> None:
    never = QuietHours(starts=time(8), ends=time(8))
    assert [never.end(at(f"2026-11-10T{hour:02}:00"), UTC_ZONE) for hour in range(24)] == [None] * 24
