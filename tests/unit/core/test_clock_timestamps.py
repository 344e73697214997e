"""All output formats times in one way, and timestamps sort as text."""

import ast
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pillarbox.core.clock import parse_timestamp, timestamp

ROOT = Path(__file__).parents[3]
ALLOWED = {
    "src/pillarbox/core/clock.py": "the codec",
    "src/pillarbox/dialects/sqlite.py": "the text that SQLite keeps and compares",
    "src/pillarbox/record/encoding.py": "a value of the caller's payload, with the caller's offset",
    "src/pillarbox/ops/settings/kinds.py": "a value of a settings file, on its way to being read",
    "apps/runtime/timestamps.py": "the codec of the applications, which import public names only",
    "apps/notifications/saving.py": "the text that SQLite keeps and compares",
    "apps/notifications/producers/reservations.py": "a local time of the application's payload",
}
"""Where a time is written for something else than output."""
ZONES = st.timedeltas(min_value=timedelta(hours=-14), max_value=timedelta(hours=14)).map(timezone)
TIMES = st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=ZONES | st.just(UTC))


@given(TIMES, TIMES)
@example(datetime(2026, 11, 15, 9, 0, 41, tzinfo=UTC), datetime(2026, 11, 15, 9, 0, 41, 5000, tzinfo=UTC))
@example(datetime(44, 3, 15, tzinfo=UTC), datetime(1044, 3, 15, tzinfo=UTC))
def test_timestamps_sort_as_text(one: datetime, other: datetime) -> None:
    assert (timestamp(one) < timestamp(other)) == (one < other)
    assert len(timestamp(one)) == 27
    assert datetime.fromisoformat(timestamp(one)) == one


def test_a_timestamp_is_in_utc_with_microseconds() -> None:
    assert timestamp(datetime(2026, 11, 30, 10, tzinfo=timezone(timedelta(hours=1)))) == "2026-11-30T09:00:00.000000Z"
    assert timestamp(None) is None


@given(TIMES)
def test_a_timestamp_is_parsed(at: datetime) -> None:
    parsed = parse_timestamp(timestamp(at))
    assert parsed == at
    assert parsed is not None
    assert parsed.tzinfo is UTC


@pytest.mark.parametrize("text", [None, "", "yesterday", "2026-11-30T09:00:00", "0001-01-01T00:00:00+14:00"])
def test_a_text_that_names_no_time_is_parsed_to_none(text: str | None) -> None:
    assert parse_timestamp(text) is None


def written_elsewhere(source: str) -> Iterator[int]:
    """Lines that write a time by themselves: isoformat, strftime, a format such as {at:%H}, a log's own clock."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(attr="isoformat" | "strftime" | "ctime" | "asctime"):
                yield node.lineno
            case ast.FormattedValue(format_spec=ast.JoinedStr() as spec):
                if any(code in ast.unparse(spec) for code in ("%H", "%Y", "%M")):
                    yield node.lineno
            case ast.Call(func=ast.Attribute(attr="basicConfig"), keywords=given):
                if any(one.arg == "format" for one in given):
                    yield node.lineno


def test_no_module_formats_times_by_itself() -> None:
    found = [
        f"{name}:{line}"
        for folder in ("src/pillarbox", "apps", "examples")
        for file in sorted((ROOT / folder).rglob("*.py"))
        if (name := str(file.relative_to(ROOT))) not in ALLOWED and "/testing/" not in name
        for line in written_elsewhere(file.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_other_formats_are_found() -> None:
    for source in ("x.isoformat()", "f'{x:%H:%M}'", "logging.basicConfig(format='%(asctime)s')"):
        assert list(written_elsewhere(source)) == [1]
