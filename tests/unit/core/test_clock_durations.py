"""Durations are numbers with a unit; everything else is rejected."""

from __future__ import annotations

from datetime import timedelta

import pytest

from pillarbox.core.clock import seconds
from pillarbox.core.errors import ConfigurationError


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("500ms", 0.5),
        ("2s", 2),
        ("2 s", 2),
        ("1.5s", 1.5),
        ("1 second", 1),
        ("90 seconds", 90),
        ("1m", 60),
        ("5min", 300),
        ("1 minute", 60),
        ("10 minutes", 600),
        ("1h", 3600),
        ("2 hours", 7200),
        ("7 days", 604_800),
        ("1d", 86_400),
        ("2w", 1_209_600),
        ("1 week", 604_800),
        ("  3 Days ", 259_200),
        ("0s", 0),
        (0, 0),
        (15, 15),
        (0.25, 0.25),
        (timedelta(minutes=2), 120),
    ],
)
def test_a_duration_is_read_in_seconds(written: object, expected: float) -> None:
    assert seconds(written) == pytest.approx(expected)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong",
    [
        *("", "s", "5", "5 parsecs", "-1s", "1s2", "1h30m", "1e3s", "soon"),
        *("36526d", "999999999d", 1e30, 10**400, timedelta.max),
        *(-1, float("inf"), float("nan"), True, None, b"1s", timedelta(seconds=-1)),
    ],
)
def test_an_invalid_duration_is_rejected_and_the_setting_named(wrong: object) -> None:
    with pytest.raises(ConfigurationError, match=r"relay\.lease"):
        seconds(wrong, field="relay.lease")  # type: ignore[arg-type]
