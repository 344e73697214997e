"""The correlation id of the request or event that this task or thread handles; every log line carries it.

The id is never reset, because each request and each event has its own context.
"""

from __future__ import annotations

import logging
import re
from contextvars import ContextVar
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADER = "X-Correlation-ID"
NONE = "-"

_current: ContextVar[str] = ContextVar("correlation_id", default=NONE)
_WRITTEN = re.compile(r"[!-~]{1,200}")


def new() -> str:
    return str(uuid4())


def is_valid(text: str) -> bool:
    """1 to 200 visible ASCII characters: it goes into headers and log lines."""
    return _WRITTEN.fullmatch(text) is not None


def use(correlation_id: str | None) -> None:
    _current.set(correlation_id or NONE)


def current() -> str:
    return _current.get()


class Stamp(logging.Filter):
    """Adds the correlation id to every log record that has none yet (see `of`)."""

    def filter(self, record: logging.LogRecord) -> bool:
        if not hasattr(record, "correlation_id"):
            record.correlation_id = current()
        return True


def of(correlation_id: str | None) -> dict[str, str]:
    """`extra` of a log line about an event that this task does not handle itself, such as a relay's."""
    given = correlation_id or NONE
    return {"correlation_id": given if is_valid(given) else NONE}


class Correlation:
    """Takes X-Correlation-ID from the request, or generates one if missing or invalid; adds it to the response."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get(HEADER, "")
        correlation_id = given if is_valid(given) else new()
        use(correlation_id)

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[HEADER] = correlation_id
            await send(message)

        await self._app(scope, receive, send_with_id)
