from datetime import UTC, datetime, timedelta

import pytest

from pillarbox.admin.overview import Overview
from pillarbox.ops.console import formatting

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "reported"),
    [
        (0.005, "5 ms"),
        (1.25, "1.2 s"),
        (59, "59 s"),
        (60, "1 min"),
        (3725, "1 h 2 min"),
        (90_000, "1 d 1 h"),
        (None, "\N{EN DASH}"),
    ],
)
def test_a_duration_has_a_readable_unit(seconds: float | None, reported: str) -> None:
    assert formatting.span(seconds) == reported


def test_a_time_is_shown_relative_to_now() -> None:
    assert formatting.ago(NOON - timedelta(seconds=5), NOON) == "5 s ago"
    assert formatting.ago(NOON + timedelta(minutes=2), NOON) == "in 2 min"


def test_a_time_in_the_past_is_shown_as_due() -> None:
    assert formatting.due(NOON - timedelta(seconds=636), NOON) == "due"
    assert formatting.due(NOON + timedelta(minutes=2), NOON) == "in 2 min"


def test_the_end_of_a_long_id_is_shown() -> None:
    assert formatting.tail("0193c2f0-6b1e-7c3a-9f57-00000000002a") == "\N{HORIZONTAL ELLIPSIS}00000000002a"
    assert formatting.tail("thirteen-long") == "thirteen-long"


@pytest.mark.parametrize(
    ("backlog", "exact", "reported"),
    [(12_345_678, True, "12,345,678"), (12_345_678, False, "~12,345,678"), (10_001, False, "10,000+")],
)
def test_an_estimate_says_so(backlog: int, exact: bool, reported: str) -> None:
    seen = Overview(backlog=backlog, oldest=None, exact=exact, dead=0, lanes=[], relays=[])
    assert formatting.backlog(seen) == reported


def test_control_characters_are_written_as_escapes() -> None:
    assert formatting.clean("a\x00b\u202ec\nd") == "a\\x00b\\u202ec\nd"
    assert formatting.clean(None) == ""


def test_text_between_backticks_is_code_and_never_markup() -> None:
    assert formatting.commands("run `a <b>`, then <i>") == "run <code>a &lt;b&gt;</code>, then &lt;i&gt;"
    assert formatting.commands("one ` alone") == "one <code> alone</code>"
