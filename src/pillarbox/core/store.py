"""The protocol of a store: what a relay needs, in facets of a few methods each.

    lanes          join · renew · ended · expire · session_ended · acquire · release            ownership of lanes
    messages       fetch · earlier · orphaned_queues · parked_destinations                      fetches
    writes         settle · hold · split · count_attempt · execute_requests · request_retry     outcomes, requests
    destinations   report · overrides                                                           errors, overrides
    statistics     add · backlog                                                                samples of relays
    pruning        prune                                                                        retention
    ledger         begin                                                                        earlier sends
    wakeup         request · wait                                                               idle relays
    schema         sql · scripts · downgrades · apply · check · status · prepare                the tables

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
from pillarbox.core.statistics import Backlog, BacklogStatistics, OutcomeStatistics

EVERYWHERE = "*"
"""In place of a destination: an override of all destinations."""

ForcedBreakerState = Literal["open", "closed"]
"""The state in which an operator holds a breaker."""


class Override(NamedTuple):
    """The state that operators set for a destination, and its last error."""

    destination: str
    """A destination, or `EVERYWHERE`."""
    paused: bool
    breaker: ForcedBreakerState | None
    rate_limit: float | None
    """Messages per second, of all relays together."""
    last_error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """Retention periods in seconds, from the time a row was settled or written; None: keep forever."""

    history: float | None = None
    """Delivered messages."""
    dead: float | None = None
    """Dead letters."""
    inbox: float | None = None
    """Inbox records and consumer statistics."""
    ledger: float | None = None
    """Entries of the ledger."""
    audit: float | None = None
    """The audit log, and operator requests that were executed."""
    samples: float | None = None
    """Statistics over time."""

    @property
    def attempts(self) -> float | None:
        """Failed attempts are kept as long as the history and the dead letters that they explain."""
        return None if self.history is None or self.dead is None else max(self.history, self.dead)

    def since(self, seconds: float) -> Retention:
        """The same retention as of this many seconds ago: rows that expired since are kept."""
        ages = {field.name: getattr(self, field.name) for field in fields(self)}
        return Retention(**{name: None if age is None else age + seconds for name, age in ages.items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationScript:
    """The statements of one migration for another tool to run: SQL without parameters, one statement each.

    They belong into one transaction. MariaDB commits after each: there, every statement can be repeated.
    """

    version: int
    name: str
    """Such as 0001_initial."""
    statements: tuple[str, ...]
    """The last one registers the version in the table `schema`, or removes it from there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaStatus:
    """The version of the tables, and the version that this release needs."""

    version: int
    """0 = no tables."""
    required: int
    breaking: int = 0
    """The newest version that was not additive: a release that needs an older one cannot use the tables."""
    pending: tuple[str, ...] = ()
    """Migrations to run, in order."""
    problems: tuple[str, ...] = ()
    """Other problems, each with its remedy."""

    @property
    def ok(self) -> bool:
        return not (self.too_new or self.pending or self.problems)

    @property
    def too_new(self) -> bool:
        """Whether a later release made a change that this release does not know how to handle."""
        return self.breaking > self.required

    def refuse_newer(self) -> None:
        """Raise SchemaError if a later release changed the tables in a way that this release cannot handle."""
        if self.too_new:
            raise SchemaError(
                f"the tables are at version {self.version}, this release supports {self.required}: "
                "upgrade Pillarbox first"
            )

    def demand(self) -> None:
        """Raise SchemaError with a remedy unless this release can use the tables."""
        self.refuse_newer()
        if self.pending:
            raise SchemaError(
                f"the tables are at version {self.version}, this release needs {self.required}: "
                f"run `{SchemaError.command}`"
            )
        if self.problems:
            raise SchemaError("; ".join(self.problems))


LedgerKind = bool | Literal["history"]
"""Where the relay checks whether an event was sent before. False: nowhere. "history": in the history, as far back as it
is kept, at the first send only. True: in a ledger, which it writes before every send and at every settlement."""


class PriorSend(Enum):
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

    async def add(self, relay: str, values: Mapping[str, OutcomeStatistics | BacklogStatistics]) -> None:
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

    records_sends: bool
    """Whether it writes entries of its own and can return UNKNOWN."""

    async def begin(self, messages: Sequence[Resolved]) -> list[PriorSend]:
        """Write that these messages are about to be sent; returns for each whether it was sent before.

        SENT: the relay does not send it again. UNKNOWN: this send began and was never settled, so it may or may not
        have been sent; the relay decides.
        """
        ...


class Pruning(Protocol):
    """Deletes data past its retention period in small batches."""

    async def prune(self, kept: Retention, *, limit: int = 1000) -> int:
        """Delete data past its retention period.

        Deletes at most `limit` rows of each kind, or whole days of history; returns how many rows or days. Never
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
        """Ask producers to notify this relay for at least this many seconds; 0: no longer."""
        ...

    async def wait(self, seconds: float) -> bool:
        """Wait at most this many seconds for a notification; True if one arrived or may have been missed."""
        ...


class Schema(Protocol):
    """Creates and checks the tables."""

    def sql(self, *, since: int = 0, aliases: bool = False) -> str:
        """Everything that `apply` runs on tables at version `since`, as one script for the database's shell."""
        ...

    def scripts(self, *, since: int = 0) -> list[MigrationScript]:
        """The migrations after version `since`, oldest first, as statements for another migration tool.

        Raises ConfigurationError if there is no such version.
        """
        ...

    def downgrades(self, *, to: int, since: int | None = None, discard_pending: bool = False) -> list[MigrationScript]:
        """What undoes the migrations after version `to`, newest first, beginning with `since` (default: the newest).

        To version 0, which drops the tables, it fails if events are pending, unless `discard_pending`. Raises
        ConfigurationError if there is no such version.
        """
        ...

    async def apply(self, *, aliases: bool = False) -> list[str]:
        """Run the pending migrations; returns their names. Safe to repeat, also concurrently.

        `aliases` adds compatibility views with the table names of other outboxes. Raises SchemaError if the tables are
        newer than this release.
        """
        ...

    async def check(self) -> None:
        """Raise SchemaError with a remedy unless this release can use the tables."""
        ...

    async def status(self) -> SchemaStatus:
        """The version of the tables, pending migrations and problems."""
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
    """The store has the whole operator interface, see `pillarbox.admin`."""
    listings: bool = False
    """The store lists events and dead letters, and edits dead letters: the facets `events`, `dead_letters`,
    `inspection` and `samples` of `Admin`."""
    requests: frozenset[str] = frozenset()
    """The operator requests that `writes.execute_requests` executes: retry, discard, reschedule, dead_letter."""


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
    def pruning(self) -> Pruning: ...
    @property
    def ledger(self) -> Ledger | None:
        """None if the store keeps no ledger."""
        ...

    @property
    def wakeup(self) -> Wakeup: ...
    @property
    def schema(self) -> Schema: ...

    def clone(self, *, history: bool | None = None, ledger: LedgerKind | None = None) -> Store:
        """Return a store on the same data with its own connections, for another event loop; the caller closes it.

        It has the settings of this one; `history` and `ledger` override what it keeps.
        """
        ...

    async def aclose(self) -> None:
        """Close every connection; closing twice is fine."""
        ...
