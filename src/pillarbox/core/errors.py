"""Every error Pillarbox raises on purpose.

PillarboxError
├── ConfigurationError      a setting, a name or a relation between settings is wrong
├── RecordError             an event was refused inside the caller's transaction; `field` names the culprit
│   ├── HandleRefused       what was passed is no transaction to work in; an InboxError as well
│   │   └── NotInTransaction    … because the insert would have committed by itself
│   └── DuplicateEvent      an event with this id already waits
├── SchemaError             the tables are missing, too old or too new
├── StoreUnavailable        the database cannot be reached or took too long
├── SendError               a transport did not accept a message
│   ├── Rejected            this one message is at fault
│   │   └── PermanentError  … and trying again is pointless
│   └── Unavailable         the destination is at fault; the message is never charged for it
│       └── Nacked          … and it said so of this one message (a full queue)
├── RelayFailed             a relay could not go on; its cause says why
└── InboxError              a consumer's guard could not be asked

A message says what happened, to which event or destination, and what to try next.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator


class PillarboxError(Exception):
    """Root of the tree."""


class ConfigurationError(PillarboxError):
    """A setting, a name or a relation between settings is wrong."""


class RecordError(PillarboxError):
    """An event was refused; nothing of it was written."""

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class InboxError(PillarboxError):
    """A consumer's guard could not be asked."""


class HandleRefused(RecordError, InboxError):
    """What was passed is no transaction to work in; recording and admitting ask for the same."""

    def __init__(self, message: str) -> None:
        super().__init__(message, field="connection")


class NotInTransaction(HandleRefused):
    """The insert would have committed by itself, apart from the business rows it belongs to."""


class DuplicateEvent(RecordError):
    """An event with this id already waits in the outbox."""


class SchemaError(PillarboxError):
    """The tables are missing, too old or too new."""


class StoreUnavailable(PillarboxError):
    """The database cannot be reached or took too long."""


class RowsRefused(StoreUnavailable):
    """The database refuses a row for what is in it, and would refuse it again; other rows are not concerned."""

    def __init__(self, message: str, *, places: Iterable[tuple[int, str]] = ()) -> None:
        super().__init__(message)
        self.places = frozenset(places)
        """The messages concerned, as `Message.place` names them, where that is known."""


class SendError(PillarboxError):
    """A transport did not accept a message."""


class Rejected(SendError):
    """This one message is at fault."""


class PermanentError(Rejected):
    """This one message is at fault and trying again is pointless."""


class Unavailable(SendError):
    """The destination is at fault; no message is charged for it."""


class Nacked(Unavailable):
    """The broker answered no to this one message: it waits with backoff, uncharged, and holds its key."""


class RelayFailed(PillarboxError):
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
