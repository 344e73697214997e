"""Log levels: each kind of observation has a line, and a disabled line costs nothing."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any

import pytest

from pillarbox.core.clock import SystemClock
from pillarbox.core.observations import (
    BatchDelivered,
    EventDeadLettered,
    EventDelivered,
    EventRetried,
    EventSkipped,
    Observation,
    Sending,
)
from pillarbox.telemetry.log_lines import TRACE
from pillarbox.telemetry.logs import EVENTS, RelayLog
from tests.unit.telemetry.examples import DELIVERED, EXAMPLES, KINDS, OPENED, RETRIED, kept, lines, logged


class Untouched:
    """A message that fails if it is read."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(f"{name} was read")


class Stopped(SystemClock):
    """A clock that fails if it is read."""

    def now(self) -> datetime:
        raise AssertionError("the clock was read")


@pytest.mark.parametrize("kind", KINDS)
def test_every_observation_has_a_line(kind: type[Observation]) -> None:
    examples = [example for example in EXAMPLES if isinstance(example, kind)]
    assert examples, f"add an example of {kind.__name__}"
    for example in examples:
        assert lines(example)


def test_disabled_levels_do_not_read_the_events() -> None:
    untouched: Any = Untouched()
    observations: list[Observation] = [
        Sending(relay="r", destination="d", messages=untouched),
        EventDelivered(relay="r", message=untouched, destination="d", seconds=1),
        EventSkipped(relay="r", message=untouched, destination="d"),
        EventRetried(relay="r", message=untouched, destination="d", error="", attempt=1, delay=1, counted=True),
        EventRetried(relay="r", message=untouched, destination="d", error="", attempt=1, delay=1, counted=False),
        EventDeadLettered(relay="r", message=untouched, destination="d", error="", attempt=1, blocks=False),
        OPENED,
    ]
    listener = RelayLog(Stopped())
    with kept(logging.CRITICAL) as records:
        for observation in observations:
            listener(observation)
        listener.delivered(BatchDelivered(relay="r", destination="d", messages=untouched, seconds=1))
    assert records == []


def test_events_can_be_silenced_without_the_relay() -> None:
    before = EVENTS.level
    EVENTS.setLevel(logging.WARNING)
    try:
        assert [(name, level) for name, level, _ in logged(DELIVERED, RETRIED, *EXAMPLES[:1])] == [
            ("pillarbox.relay.events", "ERROR"),
            ("pillarbox.relay.events", "WARNING"),
            ("pillarbox.relay", "INFO"),
        ]
    finally:
        EVENTS.setLevel(before)


def test_at_level_error_failures_are_logged_without_retries() -> None:
    assert [level for _, level, _ in logged(RETRIED, level=logging.ERROR)] == ["ERROR"]


def test_empty_fetches_are_below_debug() -> None:
    assert [name for *_, name in logged(*EXAMPLES, level=logging.DEBUG) if "nothing pending" in name] == []
    assert logging.getLevelName(TRACE) == "TRACE"


def test_a_level_name_of_the_application_is_kept() -> None:
    logging.addLevelName(TRACE, "FINEST")
    try:
        RelayLog()
        assert logging.getLevelName(TRACE) == "FINEST"
    finally:
        logging.addLevelName(TRACE, "TRACE")
