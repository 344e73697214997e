"""Every error Pillarbox raises on purpose.

PillarboxError
├── ConfigurationError            a setting, a name or a relation between settings is wrong
├── RecordError                   an event was refused inside the caller's transaction; `field` names the culprit
│   ├── InvalidConnectionError    the object passed is no connection in a transaction; an InboxError as well
│   │   └── NotInTransactionError     … because the INSERT would commit by itself
│   └── DuplicateEventError       an event with this id is pending already
├── InboxError                    the inbox could not tell whether an event was processed
├── SchemaError                   the tables are missing, too old or too new
├── StoreUnavailableError       * the database cannot be reached or took too long
│   └── RowsRefusedError          … because it refuses a row for its content
├── SendError                   * a transport did not accept a message
│   ├── RejectedError           * this one message is at fault
│   │   └── PermanentError        … and a retry is pointless
│   └── UnavailableError        * the destination is at fault; no attempt of the message is counted
│       └── NackedError         * … and it refused this one message for now (a full queue)
└── RelayFailedError              a relay stopped by itself; its cause says why

`retryable` is True for the errors marked *: the same call may succeed later without a change by an operator.
A message has three parts: what failed, with its value; why; what to do next.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar


class PillarboxError(Exception):
    """Base class of all errors of Pillarbox."""

    retryable: ClassVar[bool] = False
    """Whether the same call may succeed later without a change by an operator."""


class ConfigurationError(PillarboxError):
    """A setting, a name or a relation between settings is wrong."""


class RecordError(PillarboxError):
    """An event was refused; nothing of it was written."""

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class InboxError(PillarboxError):
    """The inbox could not tell whether an event was processed."""


class InvalidConnectionError(RecordError, InboxError):
    """The object passed to `record` or `admit` is no connection in a transaction."""

    def __init__(self, message: str) -> None:
        super().__init__(message, field="connection")


class NotInTransactionError(InvalidConnectionError):
    """The INSERT would commit by itself, apart from the business rows it belongs to."""


class DuplicateEventError(RecordError):
    """An event with this id is pending in the outbox already."""


class SchemaError(PillarboxError):
    """The tables are missing, too old or too new."""


class StoreUnavailableError(PillarboxError):
    """The database cannot be reached or took too long."""

    retryable = True


class RowsRefusedError(StoreUnavailableError):
    """The database refuses a row for its content, and would refuse it again; other rows are not affected."""

    retryable = False

    def __init__(self, message: str, *, positions: Iterable[tuple[int, str]] = ()) -> None:
        super().__init__(message)
        self.positions = frozenset(positions)
        """The messages concerned, as `Message.position` names them, where that is known."""


class SendError(PillarboxError):
    """A transport did not accept a message."""

    retryable = True


class RejectedError(SendError):
    """This one message is at fault. The relay retries it by its retry policy and counts the attempt."""


class PermanentError(RejectedError):
    """This one message is at fault and a retry is pointless. The relay dead-letters it."""

    retryable = False


class UnavailableError(SendError):
    """The destination is at fault. The relay retries and counts no attempt."""


class NackedError(UnavailableError):
    """The broker refused this one message for now. The relay retries it with backoff, counts no attempt and keeps the
    order of its key."""


class RelayFailedError(PillarboxError):
    """A relay stopped by itself: its event loop hung, or something failed that no outage explains."""


# What the exception of a database driver may tell is the server's primary message: PostgreSQL's DETAIL and CONTEXT show
# whole rows, and SQLAlchemy adds the statement with its parameters. Payloads must not reach a log line, a dead letter's
# error or a page. This package imports no driver, so drivers are recognised by the attributes of their exceptions.
_MARKS = ("sqlstate", "pgcode", "sqlite_errorname")


def layers(error: BaseException) -> Iterator[BaseException]:
    """The exception, and the driver's own below SQLAlchemy's. Whoever raised it may have linked it to itself."""
    layer: BaseException | None = error
    seen: set[int] = set()
    while layer is not None and id(layer) not in seen:
        seen.add(id(layer))
        yield layer
        below = getattr(layer, "orig", None)
        layer = below if isinstance(below, BaseException) else layer.__cause__


def primary_text(error: BaseException) -> str:
    """What an exception says; of a database's, its first line only. Raises whatever its `__str__` raises."""
    layer, seen = error, {id(error)}
    while isinstance(below := getattr(layer, "orig", None), BaseException) and id(below) not in seen:
        layer = below
        seen.add(id(layer))
    if layer is error and not any(getattr(layer, mark, None) for mark in _MARKS):
        return str(error)
    return str(layer).partition("\n")[0]


def presentable(error: BaseException) -> BaseException | None:
    """The driver's own exception as the cause of ours, for tracebacks; None if it would show a row."""
    *_, innermost = layers(error)
    state = getattr(innermost, "sqlstate", None) or getattr(innermost, "pgcode", None) or ""
    # A unique violation shows its key only, which is the event's id.
    return None if state[:2] in ("22", "23") and state != "23505" else innermost
