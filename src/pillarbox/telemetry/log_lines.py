"""The log format of a process: timestamps that sort as text, and no terminal control characters."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime

from pillarbox.core.clock import timestamp
from pillarbox.core.text import escaped

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class LineFormatter(logging.Formatter):
    """Formats each record as one line; only tracebacks have more."""

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        return timestamp(datetime.fromtimestamp(record.created, UTC))

    def formatMessage(self, record: logging.LogRecord) -> str:
        return escaped(super().formatMessage(record))

    def formatException(self, ei: object) -> str:
        return escaped(super().formatException(ei), keep="\n\t")  # type: ignore[arg-type]


def log_to_stderr(level: int, *, form: str = FORMAT) -> None:
    """Log to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter(form))
    logging.basicConfig(level=level, handlers=[handler])
