"""Every error that Pillarbox raises; `pillarbox.settings` defines InvalidSettingError.

PillarboxError
├── ConfigurationError            a setting, a name or a relation between settings is wrong
│   ├── SettingsError             all problems of a settings file, the environment and the flags
│   ├── InvalidSettingError       a value or a relation of values of a settings class
│   └── UnknownDestinationError   no destination has this name
├── RecordError                   an event was rejected inside the caller's transaction; `field` names the invalid field
│   ├── InvalidConnectionError    the object passed is not a connection in a transaction; also an InboxError
│   │   └── NotInTransactionError     … because the INSERT would commit on its own
│   └── DuplicateEventError       an event with this id is pending already
├── InboxError                    the inbox could not determine whether an event was processed
├── SchemaError                   the tables are missing, too old or too new
├── StoreUnavailableError       * the database cannot be reached or took too long
│   └── RowsRefusedError          … or it rejects the content of a row, which a retry does not change
├── SendError                   * a transport did not accept a message
│   ├── RejectedError           * this one message is at fault
│   │   └── PermanentError        … and a retry is pointless
│   └── UnavailableError        * the destination is at fault; no attempt of the message is counted
│       ├── NackedError         * … and it refused this one message for now (a full queue)
│       └── GoneError             … and it said that it is gone: the relay pauses it until an operator resumes it
├── RelayFailedError              a relay stopped because of an error; see its cause
├── CommandError                  a command of an operator cannot continue
└── WebhookVerificationError      a request is not a webhook of this sender, or too old

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


class SettingsError(ConfigurationError):
    """All problems of the settings, one per line."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class UnknownDestinationError(ConfigurationError):
    """No destination has this name."""


class RecordError(PillarboxError):
    """An event was rejected; nothing was written."""

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class InboxError(PillarboxError):
    """The inbox could not determine whether an event was processed."""


class InvalidConnectionError(RecordError, InboxError):
    """The object passed to `record` or `admit` is not a connection in a transaction."""

    def __init__(self, message: str) -> None:
        super().__init__(message, field="connection")


class NotInTransactionError(InvalidConnectionError):
    """The INSERT would commit on its own, not together with the business rows."""


class DuplicateEventError(RecordError):
    """An event with this id is pending in the outbox already."""


class SchemaError(PillarboxError):
    """The tables are missing, too old or too new."""

    command: ClassVar[str] = "pillarbox schema apply"
    """The command that creates and upgrades the tables. An integration with a framework that has migrations of its own
    names that of the framework, for the whole process."""

    def __init__(self, *args: object, forbidden: bool = False) -> None:
        super().__init__(*args)
        self.forbidden = forbidden
        """Whether the role of the connection lacks a privilege."""


class StoreUnavailableError(PillarboxError):
    """The database cannot be reached or took too long."""

    retryable = True

    def __init__(self, message: str, *, unreachable: bool = False) -> None:
        super().__init__(message)
        self.unreachable = unreachable
        """Whether no connection could be opened: the server does not run, or the address is wrong."""


class RowsRefusedError(StoreUnavailableError):
    """The database rejects the content of a row. A retry of this row is pointless; other rows are not affected."""

    retryable = False

    def __init__(self, message: str, *, positions: Iterable[tuple[int, str]] = ()) -> None:
        super().__init__(message)
        self.positions = frozenset(positions)
        """The positions (`Message.position`) of the messages concerned, where they are known."""


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

    def __init__(self, *args: object, retry_after: float | None = None) -> None:
        super().__init__(*args)
        self.retry_after = retry_after
        """Seconds that the destination asked to wait: the relay sends it nothing for at least as long; None: it did
        not ask."""


class NackedError(UnavailableError):
    """The broker refused this one message for now. The relay retries it with backoff, counts no attempt and keeps the
    order of its key."""

    def __init__(self, *args: object, retry_after: float | None = None, alone: bool = False) -> None:
        super().__init__(*args, retry_after=retry_after)
        self.alone = alone
        """Whether the destination accepts others meanwhile: then it stays available, even if it accepts none of a
        batch."""


class GoneError(UnavailableError):
    """The destination said that it is gone. The relay pauses it for all relays, as an operator would, counts no attempt
    and sends it nothing until an operator resumes it."""

    retryable = False


class RelayFailedError(PillarboxError):
    """A relay stopped because of an error: its event loop hung, or an unexpected exception was raised."""


class CommandError(PillarboxError):
    """A command of an operator cannot continue."""


class WebhookVerificationError(PillarboxError):
    """A request is not a webhook of this sender, or too old. Answer with status 400; its text shows no secret."""


# Payloads must not appear in log lines, errors of dead letters or pages. PostgreSQL's DETAIL and CONTEXT contain whole
# rows, and SQLAlchemy adds the statement with its parameters. So only the server's primary message is shown. This
# package imports no driver: it recognises drivers by the attributes of their exceptions.
_MARKS = ("sqlstate", "pgcode", "sqlite_errorname")
_DUPLICATE_ENTRY = 1062
"""The number of a unique violation in MariaDB, whose SQLSTATE is that of all constraints."""


def layers(error: BaseException) -> Iterator[BaseException]:
    """The exception and its causes, among them the driver's exception inside SQLAlchemy's. Cycles end the iteration."""
    layer: BaseException | None = error
    seen: set[int] = set()
    while layer is not None and id(layer) not in seen:
        seen.add(id(layer))
        yield layer
        below = getattr(layer, "orig", None)
        layer = below if isinstance(below, BaseException) else layer.__cause__


def primary_text(error: BaseException) -> str:
    """The text of an exception; for a database error its first line only. Raises whatever its `__str__` raises."""
    layer, seen = error, {id(error)}
    while isinstance(below := getattr(layer, "orig", None), BaseException) and id(below) not in seen:
        layer = below
        seen.add(id(layer))
    if layer is error and not any(getattr(layer, mark, None) for mark in _MARKS):
        return str(error)
    return str(layer).partition("\n")[0]


def presentable(error: BaseException) -> BaseException | None:
    """The driver's exception, to be raised from; None if its text would contain a row."""
    *_, innermost = layers(error)
    state = getattr(innermost, "sqlstate", None) or getattr(innermost, "pgcode", None) or ""
    # The text of a unique violation contains only the key: the id of the event.
    is_duplicate = state == "23505" or (state == "23000" and innermost.args[:1] == (_DUPLICATE_ENTRY,))
    return None if state[:2] in ("22", "23") and not is_duplicate else innermost
