"""The log of a process: JSON lines that any reader accepts, and lines about single events only on request."""

import json
import logging
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from pillarbox import ConfigurationError
from pillarbox.telemetry.log_lines import EVENT_LOGGERS, JsonFormatter, LogOptions


@contextmanager
def fresh_root() -> Iterator[logging.Logger]:
    """The root logger without handlers, as in a process that starts; restored at the end."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    levels = {name: logging.getLogger(name).level for name in EVENT_LOGGERS}
    root.handlers.clear()
    try:
        yield root
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        for name, before in levels.items():
            logging.getLogger(name).setLevel(before)


def line(text: str, *values: object, error: BaseException | None = None, **extra: object) -> dict[str, Any]:
    record = logging.LogRecord("shop", logging.INFO, "file", 1, text, values, None)
    if error is not None:
        record.exc_info = (type(error), error, error.__traceback__)
    vars(record).update(extra)
    text = JsonFormatter().format(record)
    assert "\n" not in text
    read: dict[str, Any] = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    return read


def test_a_json_line_has_message_level_logger_and_time() -> None:
    found = line("%d events of %s", 3, "till")
    assert {"message": "3 events of till", "level": "INFO", "logger": "shop"}.items() <= found.items()
    assert len(found["timestamp"]) == len("2026-11-30T09:00:00.000000Z")


def test_values_that_json_lacks_become_text() -> None:
    found = line("x", lanes=[1, 2], ratio=math.inf, missing=math.nan, reason=ValueError("no"), none=None)
    assert {name: found[name] for name in ("lanes", "ratio", "missing", "reason", "none")} == {
        "lanes": [1, 2],
        "ratio": "inf",
        "missing": "nan",
        "reason": "no",
        "none": None,
    }


def test_a_value_does_not_replace_what_every_line_has() -> None:
    assert line("x", level="canary", timestamp="canary")["level"] == "INFO"


def test_a_traceback_and_control_characters_stay_on_one_line() -> None:
    try:
        raise ValueError("two\nlines \x1b[31m")
    except ValueError as error:
        found = line("failed\n\x1b[31m", error=error)
    assert found["message"] == "failed\n\x1b[31m"
    assert "ValueError: two\nlines" in found["exception"]


@pytest.mark.parametrize("events", [True, False])
def test_lines_about_single_events_need_the_setting(events: bool) -> None:
    with fresh_root():
        LogOptions(events=events).apply()
        for name in EVENT_LOGGERS:
            assert logging.getLogger(name).isEnabledFor(logging.INFO) is events
            assert logging.getLogger(name).isEnabledFor(logging.WARNING)
        assert logging.getLogger("pillarbox.relay").isEnabledFor(logging.INFO)


def test_the_log_of_an_application_stays_as_it_is() -> None:
    with fresh_root() as root:
        mine = logging.StreamHandler(sys.stderr)
        root.addHandler(mine)
        LogOptions(format="json").apply()
        assert root.handlers == [mine]
        LogOptions(format="json").apply(replace=True)
        assert [type(handler.formatter) for handler in root.handlers] == [JsonFormatter]


def test_trace_is_a_level() -> None:
    with fresh_root() as root:
        LogOptions(level="TRACE").apply()
        assert root.isEnabledFor(5)


def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="level"):
        LogOptions(level="LOUD")  # type: ignore[arg-type]
