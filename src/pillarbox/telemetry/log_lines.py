"""The log format of a process: one line per record, as text or as JSON, with timestamps that sort as text.

No line contains terminal control characters. Lines about single events have loggers of their own, which `LogOptions`
limits to warnings unless `events` is set: a busy relay would write most of its log about successes.
"""

from __future__ import annotations

import logging
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, cast

from pillarbox.core.clock import timestamp
from pillarbox.core.text import escaped, safe_json
from pillarbox.settings import Choice, Flag, check_settings, documented, setting

LogFormat = Literal["text", "json"]
LogLevel = Literal["TRACE", "DEBUG", "INFO", "WARNING", "ERROR"]

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
TRACE = 5
"""Below DEBUG: lines that an idle relay repeats."""
EVENT_LOGGERS = ("pillarbox.relay.events", "pillarbox.consumer.events")
"""The loggers of lines about single events."""

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""The attributes that every record has; the others are the values of the line."""


@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """What `pillarbox relay`, `pillarbox consume` and `pillarbox console` log on standard error."""

    format: LogFormat = setting(
        "text", Choice.of(LogFormat), "`json`: one object per line, in which each value of the line has a name."
    )
    level: LogLevel = setting(
        "INFO", Choice.of(LogLevel), "The lowest level that is logged. `--verbose` logs everything from DEBUG on."
    )
    events: bool = setting(
        False,
        Flag(),
        "Log each delivered and each processed event (INFO). `false`: of the lines about single events, those from "
        "WARNING on.",
    )

    def __post_init__(self) -> None:
        check_settings(self)

    def apply(self, *, replace: bool = False) -> None:
        """Log to standard error. Without `replace`, the handlers of an application that configured its log stay."""
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(JsonFormatter() if self.format == "json" else LineFormatter(FORMAT))
        name_trace_level()
        logging.basicConfig(level=TRACE if self.level == "TRACE" else self.level, handlers=[handler], force=replace)
        self.limit_event_lines()

    def limit_event_lines(self, *, keep: bool = False) -> None:
        """Apply `events` alone. `keep`: a level that the application has set stays."""
        for logger in map(logging.getLogger, EVENT_LOGGERS):
            if not (keep and logger.level):
                # A log line takes 15 µs, a considerable part of the work per event.
                logger.setLevel(logging.NOTSET if self.events else logging.WARNING)


def name_trace_level() -> None:
    """Name the level TRACE, unless the application has another name for it."""
    if logging.getLevelName(TRACE) == f"Level {TRACE}":
        logging.addLevelName(TRACE, "TRACE")


class LineFormatter(logging.Formatter):
    """Formats each record as one line; only tracebacks have more."""

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        return timestamp(datetime.fromtimestamp(record.created, UTC))

    def formatMessage(self, record: logging.LogRecord) -> str:
        return escaped(super().formatMessage(record))

    def formatException(self, ei: object) -> str:
        return escaped(super().formatException(ei), keep="\n\t")  # type: ignore[arg-type]


class JsonFormatter(logging.Formatter):
    """Formats each record as one JSON object: timestamp, level, logger, message, and the values of the line.

    A traceback is the text of `exception`.
    """

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "timestamp": timestamp(datetime.fromtimestamp(record.created, UTC)),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        values = {name: value for name, value in vars(record).items() if name not in _STANDARD and name not in line}
        line |= {name: _as_json(value) for name, value in values.items()}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return safe_json(line)


def _as_json(value: object) -> object:
    """The value if JSON has it, else its text."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else str(value)  # JSON has neither infinity nor NaN
    if isinstance(value, list | tuple):
        return [_as_json(one) for one in cast("list[object] | tuple[object, ...]", value)]
    return str(value)
