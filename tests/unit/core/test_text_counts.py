"""Counts with singular, plural and a limit."""

import pytest

from pillarbox.core.text import noun, plural


@pytest.mark.parametrize(
    ("count", "said"), [(0, "0 events"), (1, "1 event"), (2, "2 events"), (10_001, "10,001 events")]
)
def test_singular_and_plural(count: int, said: str) -> None:
    assert plural(count, "event") == said


def test_irregular_plurals() -> None:
    assert plural(1, "entry", "entries") == "1 entry"
    assert plural(3, "entry", "entries") == "3 entries"
    assert noun(1, "event waits", "events wait") == "event waits"


def test_a_bounded_count_is_marked() -> None:
    assert plural(10_001, "event", limit=10_000) == "more than 10,000 events"
    assert plural(1, "event", limit=10_000) == "1 event"
