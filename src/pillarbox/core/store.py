"""What a relay needs of a store: a bundle of facets, each of a few methods.

    lanes          join · renew · ended · expire · session_ended · take · release     who works
    messages       read · earlier · orphaned_queues · parked_destinations                         what is there to do
    writes         settle · hold · split · note · carry_out · request_retry           what became of it
    destinations   report · overrides                                                 how destinations are doing
    statistics     add · backlog                                                      what relays report
    upkeep         prune                                                              retention
    ledger         begin                                                              what was sent before
    wakeup         request · wait                                                     a hint, never relied on
    schema         sql · apply · check · status · prepare                             the tables themselves

What operators need is in `pillarbox.admin`. Recording is not here: it runs in the caller's transaction and never uses
a store's own connections. Every method raises StoreUnavailableError when the database cannot be reached, and
SchemaError when the tables are missing. All times are told and compared by the database's clock.
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
from pillarbox.core.statistics import Backlog, Carried, Level
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
    """In seconds since a row was done with; None keeps it for ever."""

    history: float | None = None
    """Delivered messages."""
    dead: float | None = None
    """Messages that were given up on."""
    receipts: float | None = None
    """What the inbox admitted, and what consumers tallied."""
    ledger: float | None = None
    """What the ledger noted as sent or given up on."""
    audit: float | None = None
    """What people did and asked for."""
    samples: float | None = None
    """Figures over time."""

    @property
    def attempts(self) -> float | None:
        """A failed attempt may explain something as long as history or dead letters are kept."""
        return None if self.history is None or self.dead is None else max(self.history, self.dead)

    def since(self, seconds: float) -> Retention:
        """What it meant so many seconds ago: nothing is too old now that was not then."""
        ages = {field.name: getattr(self, field.name) for field in fields(self)}
        return Retention(**{name: None if age is None else age + seconds for name, age in ages.items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaStatus:
    """What the database has, and what this release wants."""

    version: int
    """0 = no tables."""
    wanted: int
    pending: tuple[str, ...] = ()
    """Migrations still to run, in order."""
    problems: tuple[str, ...] = ()
    """What is wrong besides, each with its remedy."""

    @property
    def ok(self) -> bool:
        return self.version == self.wanted and not self.problems

    def refuse_newer(self) -> None:
        """Raise SchemaError if the tables come from a later release."""
        if self.version > self.wanted:
            raise SchemaError(
                f"the tables are at version {self.version}, this release knows {self.wanted}: "
                "upgrade Pillarbox here first"
            )

    def demand(self) -> None:
        """Raise SchemaError, saying what to do, unless the tables are as they should be."""
        self.refuse_newer()
        if self.pending:
            raise SchemaError(
                f"the tables are at version {self.version}, this release wants {self.wanted}: "
                "run `pillarbox schema apply`"
            )
        if self.problems:
            raise SchemaError("; ".join(self.problems))


LedgerKind = bool | Literal["history"]
"""Where the relay reads whether an event was sent before. False: nowhere. "history": in the history, for as long as it
is kept, at the first send only. True: in a ledger of its own, written before every send and at every settlement."""


class Before(Enum):
    """What became of an event earlier, as far as is known."""

    NOT_SENT = "not sent"
    SENT = "sent"
    UNKNOWN = "unknown"
    """This very send was begun and never settled: a relay died or lost its lane in between."""


def begun(message: Message) -> int:
    """Which send of the message this is: another one after every answer that was settled."""
    return (message.attempts << 32) + message.tries


def is_first(message: Message) -> bool:
    """Whether it was never sent, and no operator wants it sent again."""
    return message.attempts == message.tries == 0


class Destinations(Protocol):
    """How destinations are doing: relays report, operators override; neither touches what the other wrote."""

    async def report(self, destination: str, *, error: str | None, next_try: float | None) -> None:
        """Write the error of a destination and the seconds until the next attempt; None clears them."""
        ...

    async def overrides(self) -> list[Override]:
        """Return the destinations with an override or an error, by name."""
        ...


class Statistics(Protocol):
    """What relays report, and what they read to report it."""

    async def add(self, relay: str, figures: Mapping[str, Carried | Level]) -> None:
        """Add a sample of a relay, by destination; `OUTBOX` for a `Level`."""
        ...

    async def backlog(self) -> Backlog:
        """Return how much is pending; cheap whatever the backlog."""
        ...


class Ledger(Protocol):
    """What was sent, kept beyond the message itself: a repeat of an event that went out is not sent again.

    A store with a ledger of its own also notes every delivery and every dead letter in it, in the same write as the
    settlement. The history answers without notes: it tells SENT from NOT_SENT, and never UNKNOWN.
    """

    keeps_notes: bool
    """Whether it can tell UNKNOWN."""

    async def begin(self, messages: Sequence[Resolved]) -> list[Before]:
        """Note that these are about to be sent; for each: what became of it before?

        SENT: it is not to be sent again. UNKNOWN: this very send was begun and never settled, so that it may have been
        sent, or not; whether to send it is the relay's decision.
        """
        ...


class Upkeep(Protocol):
    """Retention in small steps."""

    async def prune(self, kept: Retention, *, most: int = 1000) -> int:
        """Delete data past its retention period.

        Deletes at most `most` rows of each kind, or whole days of history; returns how many rows or days. Never
        touches what is pending.
        """
        ...


class Wakeup(Protocol):
    """Wake-up of a sleeping relay by producers: a hint, lost or spurious at times: the relay also fetches itself."""

    @property
    def notifies(self) -> bool:
        """Whether producers notify this relay now. When the store ends that by itself, `wait` returns True."""
        ...

    async def request(self, relay: str, seconds: float) -> None:
        """Ask producers to notify this relay for at least so long; 0: not any more."""
        ...

    async def wait(self, seconds: float) -> bool:
        """Wait for a notification, at most so long; True if one came, or events may have come without one."""
        ...


class Schema(Protocol):
    """The tables themselves."""

    def sql(self, *, aliases: bool = False) -> str:
        """Everything `apply` would run on an empty database, as one script for the database's own shell."""
        ...

    async def apply(self, *, aliases: bool = False) -> list[str]:
        """Bring the tables up to date; returns the migrations that ran. Safe twice and from several processes.

        `aliases` adds views under the names that other outboxes use. Raises SchemaError if the database is newer
        than this release.
        """
        ...

    async def check(self) -> None:
        """Raise SchemaError, saying what to do, unless the tables are as this release wants them."""
        ...

    async def status(self) -> SchemaStatus:
        """What is there and what is wanted."""
        ...

    def statements(self) -> StatementSet | None:
        """The SQL statements that the store sends, by name; None if it sends no SQL."""
        ...

    async def prepare(self) -> None:
        """Create the partitions of the coming days, where the store has partitions."""
        ...


EVERY_REQUEST = frozenset({"retry", "discard", "reschedule", "bury"})
"""All operator requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a store supports beyond the contract of `Store`; the conformance suite reads and prints these."""

    lanes: int
    many_writers: bool
    """Transactions of several producers run side by side."""
    survives_restart: bool
    partitions: bool
    """History is dropped by whole days."""
    admin: bool = False
    """The store has the whole operators' half, see `pillarbox.admin`."""
    requests: frozenset[str] = frozenset()
    """The operator requests that `writes.carry_out` carries out: retry, discard, reschedule, bury."""


class Store(Protocol):
    """Where messages wait."""

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
        """None where none is kept."""
        ...

    @property
    def wakeup(self) -> Wakeup: ...
    @property
    def schema(self) -> Schema: ...

    def beside(self, *, history: bool | None = None, ledger: LedgerKind | None = None) -> Store:
        """Another store on the same data with connections of its own, for another event loop; whoever asks closes it.

        It has the settings of this one, except that it keeps delivered messages and a ledger or not as `history` and
        `ledger` say, if they do.
        """
        ...

    async def aclose(self) -> None:
        """Close every connection; closing twice is fine."""
        ...
