"""What the status of a response means for a message and for its destination.

2xx                        accepted, whatever becomes of the rest of the response
408, 425, 429, 5xx         UnavailableError, with the wait of `Retry-After`
410                        GoneError: the relay pauses the destination
3xx and every other 4xx    RejectedError; redirects are not followed
"""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from urllib.parse import urlsplit

from pillarbox.core.errors import GoneError, RejectedError, UnavailableError
from pillarbox.core.transport import SendResult

EXCERPT_BYTES = 4096
"""The most bytes of a response that are read for the text of an error."""
_EXCERPT_LENGTH = 300
_MASK = "***"
_MIN_MASKED = 4
"""The shortest text that is masked: a shorter one would be found everywhere."""
_RETRYABLE = frozenset({408, 425, 429})
_SPACE = re.compile(r"\s+")


def result_of(
    status: int, *, host: str, retry_after: float | None = None, location: str | None = None, excerpt: str = ""
) -> SendResult:
    """The result of a message to which `host` responded with this status."""
    if 200 <= status < 300:
        return None
    said = f"{host} responded {status}{_phrase(status)}{f': {excerpt}' if excerpt else ''}"
    if status == HTTPStatus.GONE:
        return GoneError(f"{said}; the receiver is gone: correct the URL, or resume the destination")
    if status in _RETRYABLE or status >= 500:
        asked = "" if retry_after is None else f"; it asked to wait for {retry_after:.0f} s"
        return UnavailableError(f"{said}{asked}", retry_after=retry_after)
    if 300 <= status < 400:
        to = f" to {_host_of(location)}" if location else ""
        return RejectedError(f"{said}; it redirects{to}, and redirects are not followed: correct the URL")
    return RejectedError(f"{said}; correct the event or the receiver, then retry")


def retry_after_seconds(text: str | None, *, date: str | None, now: datetime, maximum: float) -> float | None:
    """The seconds of a header `Retry-After`, a number or a date; at most `maximum`. None if there is no valid one.

    A date counts from the header `Date` of the same response: the clock of this host may be wrong. Without a valid one
    it counts from `now`.
    """
    if text is None:
        return None
    text = text.strip()
    if text.isascii() and text.isdecimal():
        return min(float(text), maximum) if len(text) < 20 else maximum
    if (when := _parsed(text)) is None:
        return None
    wait = (when - (_parsed(date) or now)).total_seconds()
    return min(max(0.0, wait), maximum)


def excerpt_of(content: bytes, *, secrets: Collection[str], body: bytes) -> str:
    """The beginning of a response as one line of printable text, without the secrets of the request.

    '' if the response repeats the body of the request, which no error may show.
    """
    if body and (body in content or (content and content in body)):
        return ""
    text = content[:EXCERPT_BYTES].decode(errors="replace")
    for secret in secrets:
        if len(secret) >= _MIN_MASKED:
            text = text.replace(secret, _MASK)
    printable = "".join([char if char.isprintable() else " " for char in text])
    line = _SPACE.sub(" ", printable).strip()
    return line if len(line) <= _EXCERPT_LENGTH else f"{line[:_EXCERPT_LENGTH]}…"


def _parsed(date: str | None) -> datetime | None:
    try:
        found = parsedate_to_datetime(date or "")
    except (ValueError, IndexError, OverflowError):
        return None
    return found.replace(tzinfo=found.tzinfo or UTC)


def _phrase(status: int) -> str:
    try:
        return f" {HTTPStatus(status).phrase}"
    except ValueError:
        return ""


def _host_of(location: str) -> str:
    try:
        host = urlsplit(location).hostname
    except ValueError:
        return "an address that cannot be read"
    return repr(host[:100]) if host else "another path"
