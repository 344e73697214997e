"""The protocol of a store: what a relay needs, in facets of a few methods each.

    lanes          join · renew · ended · expire · session_ended · take · release   ownership of lanes
    messages       read · earlier · orphaned_queues · parked_destinations           fetches
    writes         settle · hold · split · note · carry_out · request_retry         outcomes and operator requests
    destinations   report · overrides                                               errors and overrides
    statistics     add · backlog                                                    samples of relays
    upkeep         prune                                                            retention
    ledger         begin                                                            what was sent before
    wakeup         request · wait                                                   wakes up idle relays
    schema         sql · apply · check · status · statements · prepare              the tables

`pillarbox.admin` has the operators' half. Recording needs no store: it runs on the caller's connection. Every method
raises StoreUnavailableError if the database cannot be reached, and SchemaError if the tables are missing. All times are
those of the database's clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from typing import Literal, NamedTuple, Protocol

from pillarbox.core.errors import SchemaError
from pillarbox.core.fetch import Messages
from pillarbox.core.lane import Lanes
from pillarbox.core.message import Message
from pillarbox.core.outcome import Resolved, Writes
from pillarbox.core.statistics import Backlog, BacklogStatistics, DeliveryStatistics
from pillarbox.statements import StatementSet

EVERYWHERE = "*"
"""In place of a destination: an override of all destinations."""

Forced = Literal["open", "closed"]
"""The state in which an operator holds a breaker."""


class Override(NamedTuple):
    """The state that operators set for a destination, and its last error."""

    destination: str
    """A destination, or `EVERYWHERE`."""
    paused: bool
    breaker: Forced | None
    rate_limit: float | None
    """Messages per second, of all relays together."""
    last_error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """Retention periods in seconds, from the time a row was settled or written; None: keep for ever."""

    history: float | None = None
    """Delivered messages."""
    dead: float | None = None
    """Dead letters."""
    inbox: float | None = None
    """Inbox records and consumer statistics."""
    ledger: float | None = None
    """Entries of the ledger."""
    audit: float | None = None
    """The audit log, and operator requests that were carried out."""
    samples: float | None = None
    """Statistics over time."""

    @property
    def attempts(self) -> float | None:
        """Failed attempts are kept as long as the history and the dead letters that they explain."""
        return None if self.history is None or self.dead is None else max(self.history, self.dead)

    def since(self, seconds: float) -> Retention:
        """The same retention as of so many seconds ago: rows that expired since are kept."""
        ages = {field.name: getattr(self, field.name) for field in fields(self)}
        return Retention(**{name: None if age is None else age + seconds for name, age in ages.items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaStatus:
    """The version of the tables, and the version that this release needs."""

    version: int
    """0 = no tables."""
    required: int
    pending: tuple[str, ...] = ()
    """Migrations to run, in order."""
    problems: tuple[str, ...] = ()
    """Other problems, each with its remedy."""

    @property
    def ok(self) -> bool:
        return self.version == self.required and not self.problems

    def refuse_newer(self) -> None:
        """Raise SchemaError if the tables come from a later release."""
        if self.version > self.required:
            raise SchemaError(
                f"the tables are at version {self.version}, this release supports {self.required}: "
                "upgrade Pillarbox first"
            )

    def demand(self) -> None:
        """Raise SchemaError with a remedy unless the tables are those of this release."""
        self.refuse_newer()
        if self.pending:
            raise SchemaError(
                f"the tables are at version {self.version}, this release needs {self.required}: "
                "run `pillarbox schema apply`"
            )
        if self.problems:
            raise SchemaError("; ".join(self.problems))


LedgerKind = bool | Literal["history"]
"""Where the relay checks whether an event was sent before. False: nowhere. "history": in the history, as far back as it
is kept, at the first send only. True: in a ledger, which it writes before every send and at every settlement."""


class Before(Enum):
    """Whether an event was sent before."""

    NOT_SENT = "not sent"
    SENT = "sent"
    UNKNOWN = "unknown"
    """This send began and was never settled: a relay crashed or lost its lane in between."""


def send_number(message: Message) -> int:
    """Identifies one send of the message: another number after every settled result."""
    return (message.attempts << 32) + message.deferrals


def is_first(message: Message) -> bool:
    """Whether the message was never sent and no operator retried it."""
    return message.attempts == message.deferrals == 0


class Destinations(Protocol):
    """The state of destinations: relays report errors, operators set overrides."""

    async def report(self, destination: str, *, error: str | None, next_attempt: float | None) -> None:
        """Write the error of a destination and the seconds until the next attempt; None clears them."""
        ...

    async def overrides(self) -> list[Override]:
        """Return the destinations with an override or an error, by name."""
        ...


class Statistics(Protocol):
    """Samples that relays write, and the backlog that they contain."""

    async def add(self, relay: str, values: Mapping[str, DeliveryStatistics | BacklogStatistics]) -> None:
        """Add a sample of a relay, by destination; `OUTBOX` for a `BacklogStatistics`."""
        ...

    async def backlog(self) -> Backlog:
        """Return how much is pending; cheap whatever the backlog."""
        ...


class Ledger(Protocol):
    """Remembers which events were sent, beyond their delivery: a duplicate is not sent again.

    A store with a ledger also writes every delivery and every dead letter to it, in the transaction of the settlement.
    A history used as ledger distinguishes SENT from NOT_SENT, and never returns UNKNOWN.
    """

    keeps_notes: bool
    """Whether it writes entries of its own and can return UNKNOWN."""

    async def begin(self, messages: Sequence[Resolved]) -> list[Before]:
        """Write that these messages are about to be sent; returns for each whether it was sent before.

        SENT: the relay does not send it again. UNKNOWN: this send began and was never settled, so it may or may not
        have been sent; the relay decides.
        """
        ...


class Upkeep(Protocol):
    """Deletes data past its retention period in small batches."""

    async def prune(self, kept: Retention, *, most: int = 1000) -> int:
        """Delete data past its retention period.

        Deletes at most `most` rows of each kind, or whole days of history; returns how many rows or days. Never
        deletes pending messages.
        """
        ...


class Wakeup(Protocol):
    """Lets producers wake up an idle relay. Notifications may be lost or spurious: the relay also polls."""

    @property
    def notifies(self) -> bool:
        """Whether producers notify this relay now. If the store stops that, `wait` returns True."""
        ...

    async def request(self, relay: str, seconds: float) -> None:
        """Ask producers to notify this relay for at least so many seconds; 0: no longer."""
        ...

    async def wait(self, seconds: float) -> bool:
        """Wait at most so many seconds for a notification; True if one arrived or may have been missed."""
        ...


class Schema(Protocol):
    """Creates and checks the tables."""

    def sql(self, *, aliases: bool = False) -> str:
        """Everything that `apply` runs on an empty database, as one script for the database's shell."""
        ...

    async def apply(self, *, aliases: bool = False) -> list[str]:
        """Run the pending migrations; returns their names. Safe to repeat, also concurrently.

        `aliases` adds compatibility views with the table names of other outboxes. Raises SchemaError if the tables are
        newer than this release.
        """
        ...

    async def check(self) -> None:
        """Raise SchemaError with a remedy unless the tables are those of this release."""
        ...

    async def status(self) -> SchemaStatus:
        """The version of the tables, pending migrations and problems."""
        ...

    def statements(self) -> StatementSet | None:
        """The SQL statements that the store sends, by name; None if it sends no SQL."""
        ...

    async def prepare(self) -> None:
        """Create the partitions of the coming days, if the store has partitions."""
        ...


EVERY_REQUEST = frozenset({"retry", "discard", "reschedule", "dead_letter"})
"""All operator requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a store supports beyond the contract of `Store`; the conformance suite reads and prints these."""

    lanes: int
    many_writers: bool
    """Transactions of several producers run concurrently."""
    survives_restart: bool
    partitions: bool
    """The history is deleted by whole days."""
    admin: bool = False
    """The store has the whole operators' half, see `pillarbox.admin`."""
    requests: frozenset[str] = frozenset()
    """The operator requests that `writes.carry_out` carries out: retry, discard, reschedule, dead_letter."""


class Store(Protocol):
    """Stores pending messages, history and dead letters."""

    @property
    def capabilities(self) -> Capabilities: ...
    @property
    def lanes(self) -> Lanes: ...
    @property
    def messages(self) -> Messages: ...
    @property
    def writes(self) -> Writes: ...
    @property
    def destinations(self) -> Destinations: ...
    @property
    def statistics(self) -> Statistics: ...
    @property
    def upkeep(self) -> Upkeep: ...
    @property
    def ledger(self) -> Ledger | None:
        """None if the store keeps no ledger."""
        ...

    @property
    def wakeup(self) -> Wakeup: ...
    @property
    def schema(self) -> Schema: ...

    def beside(self, *, history: bool | None = None, ledger: LedgerKind | None = None) -> Store:
        """Another store on the same data with its own connections, for another event loop; the caller closes it.

        It has the settings of this one; `history` and `ledger` override what it keeps.
        """
        ...

    async def aclose(self) -> None:
        """Close every connection; closing twice is fine."""
        ...
