"""What a store is: a bundle of facets, none wider than five verbs.

    lanes          join · renew · take · release · leave        who works
    messages       read · earlier · headless                    what is there to do
    writes         settle · hold · split · note · carry_out     what became of it; every one fenced by epochs
    destinations   report · steering · steer                    how the places behind the transports fare
    people         find · dead · retry · discard · ask          what an operator sees and asks for
    inspection     overview                                     how the outbox fares at a glance
    upkeep         prepare · prune                              partitions, retention
    wakeup         doze · rouse · wait                          the doorbell: a hint, never relied on
    schema         sql · apply · check · status                 the tables themselves

Recording is not here: it runs in the caller's transaction and never touches a store's own connections.
Every verb raises StoreUnavailable when the database cannot be reached, and SchemaError when the tables are not
there. All times are told and compared by the database's clock.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Final, Literal, NamedTuple, Protocol

from pillarbox.core.errors import ConfigurationError, SchemaError
from pillarbox.core.lane import Epochs, InHand, Lease, RelayCard, Renewal, Settled
from pillarbox.core.message import Held, Message, Probe, Slot, Status
from pillarbox.core.outcome import Resolved, Split, Verdict
from pillarbox.core.overview import Overview

MAX_BYTES = 8 * 1024 * 1024
"""The most payload that one read brings, whatever its limit; one message always fits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much one read may bring, and what it leaves out.

    With `recorded_after` or `recorded_before` (each with a time zone) it brings only messages that were recorded from
    the one on and before the other, and leaves a key alone from its first message outside that range on: whatever the
    state of that message, and per destination, where '' counts for all. Raises ConfigurationError.
    """

    limit: int = 500
    quota: int = 500
    """The most of one lane (of one line, for `BehindHeads`): confines a hot key to its lane."""
    max_bytes: int = MAX_BYTES
    in_hand: Collection[tuple[int, str]] = ()
    """Places (id, destination) as `Message.place` tells them. A read never continues from a position."""
    recorded_after: datetime | None = None
    recorded_before: datetime | None = None

    def __post_init__(self) -> None:
        for name in ("recorded_after", "recorded_before"):
            time = getattr(self, name)
            if time is not None and time.utcoffset() is None:
                raise ConfigurationError(f"{name} has no time zone, so nobody knows when it is; pass one with tzinfo")
        if self.recorded_after and self.recorded_before and self.recorded_after >= self.recorded_before:
            raise ConfigurationError(
                f"recorded_after {self.recorded_after} is not before recorded_before {self.recorded_before}: "
                "nothing could lie in between"
            )

    @property
    def has_range(self) -> bool:
        return self.recorded_after is not None or self.recorded_before is not None

    def covers(self, recorded_at: datetime) -> bool:
        """Does a message recorded then lie in the range?"""
        return (self.recorded_after is None or recorded_at >= self.recorded_after) and (
            self.recorded_before is None or recorded_at < self.recorded_before
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """Messages that wait for nothing, in order of their place."""

    lanes: Sequence[int]
    bounds: Bounds = Bounds()


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """Retries and delayed events whose time has come, the longest due first."""

    lanes: Sequence[int]
    bounds: Bounds = Bounds()


@dataclass(frozen=True, slots=True, kw_only=True)
class PutAside:
    """Messages put aside for these destinations, in order of their place."""

    lanes: Sequence[int]
    destinations: Sequence[str]
    bounds: Bounds = Bounds()


@dataclass(frozen=True, slots=True, kw_only=True)
class BehindHeads:
    """Messages that wait behind in these lines and have no head in front of them any more, in order."""

    slots: Sequence[Slot]
    bounds: Bounds = Bounds()


Look = Ready | Due | PutAside | BehindHeads


class Lanes(Protocol):
    """Who works. One lease per relay; lanes change only with their owner."""

    count: int

    async def join(self, card: RelayCard, *, lease: float) -> None:
        """Begin to live: a row for this relay whose lease runs for `lease` seconds."""
        ...

    async def renew(
        self, relay: str, *, lease: float, in_hand: Sequence[InHand] = (), breakers: Mapping[str, str] = {}
    ) -> Renewal | None:
        """Live on, and tell the others what is in hand and how this relay's breakers stand (destination → state).

        None means that the relay was declared dead: everything is lost, drop what is in hand.
        """
        ...

    async def take(self, relay: str, *, most: int) -> list[Lease]:
        """Take up to `most` lanes that are free or whose owner's lease ended; each under a new epoch.

        Never waits for a lane that somebody settles right now, and gives nothing to a relay that is not alive.
        A lane taken from an owner that did not leave counts one crash more.
        """
        ...

    async def release(self, relay: str, epochs: Epochs) -> None:
        """Give these lanes back; those under another epoch are somebody else's and stay so."""
        ...

    async def leave(self, relay: str) -> None:
        """Give everything back and be gone. Leaving twice is fine."""
        ...


class Headless(NamedTuple):
    """A bite of the search for lines that wait behind a head which is no longer there."""

    slots: list[Slot]
    after: Slot | None
    """Where the next bite goes on; None once every line was looked at."""


class Messages(Protocol):
    """What there is to do. Reads lock nothing."""

    async def read(self, look: Look) -> list[Message]:
        """The messages of one look, each line in order, within its bounds."""
        ...

    async def earlier(self, probes: Sequence[Probe]) -> list[bool]:
        """For each probe: does an earlier message of that key wait for that destination, or for ''?"""
        ...

    async def headless(self, lanes: Sequence[int], *, limit: int, after: Slot | None = None) -> Headless:
        """Look at up to `limit` lines beyond `after` for those that wait although nothing holds them."""
        ...


class Writes(Protocol):
    """What became of it. Each verb locks its lanes, compares epochs and writes in one statement.

    A message whose new (event id, destination) already waits is a repeat: it is dropped if its bytes are the
    same, else it becomes a dead letter; it is never an error.
    """

    async def settle(self, epochs: Epochs, verdicts: Sequence[Verdict]) -> Settled:
        """Write verdicts. The first settlement after a takeover clears the lane's crashes."""
        ...

    async def hold(self, epochs: Epochs, messages: Sequence[Resolved], held: Held) -> Settled:
        """Put messages behind their key or aside for their destination, out of the reader's way."""
        ...

    async def split(self, epochs: Epochs, splits: Sequence[Split]) -> Settled:
        """Replace each message by one per destination, in its place."""
        ...

    async def note(self, epochs: Epochs, messages: Sequence[Resolved], *, error: str, charge: bool = False) -> Settled:
        """Note a try that failed, or that is about to begin, and leave the messages where they are.

        They carry their resolved destination from then on: whoever keeps one in hand goes on with `message.to(…)`.
        """
        ...

    async def carry_out(self, epochs: Epochs, *, limit: int = 100) -> int:
        """Do what people asked for waiting messages of these lanes; returns how many requests were closed."""
        ...


EVERYWHERE = "*"
"""In place of a destination: what is set there holds for all."""

Forced = Literal["open", "closed"]
"""A breaker that a person holds in one state, whatever happens."""


class Keep(Enum):
    """What is not to be changed."""

    KEEP = "keep"


KEEP: Final = Keep.KEEP
"""Leave it as it is; None clears it."""


class Steering(NamedTuple):
    """What people set for a destination, and what it last said."""

    destination: str
    """A destination, or `EVERYWHERE`."""
    paused: bool
    breaker: Forced | None
    rate_limit: float | None
    """Messages per second, of all relays together."""
    last_error: str | None


class Destinations(Protocol):
    """How the places behind the transports fare: relays report, people steer; neither touches what the other wrote."""

    async def report(self, destination: str, *, error: str | None, next_try: float | None) -> None:
        """Note what is wrong with a destination and in how many seconds it is tried again; None: nothing, and never."""
        ...

    async def steering(self) -> list[Steering]:
        """The destinations for which people set something or an error is noted, by name."""
        ...

    async def steer(
        self,
        destination: str,
        *,
        paused: bool | Keep = KEEP,
        breaker: Forced | Keep | None = KEEP,
        rate_limit: float | Keep | None = KEEP,
        by: str = "",
    ) -> None:
        """Set what a person wants for a destination or for `EVERYWHERE`, and remember who did.

        Raises ConfigurationError for a state that no breaker has and for a limit that is not above zero.
        """
        ...


def changes(
    *, paused: bool | Keep, breaker: Forced | Keep | None, rate_limit: float | Keep | None
) -> dict[str, bool | str | float | None]:
    """Of what `Destinations.steer` was given, that which is to change. Raises ConfigurationError."""
    if breaker not in (KEEP, None, "open", "closed"):
        raise ConfigurationError(f"a breaker cannot be {breaker!r}: force it 'open' or 'closed', or clear it with None")
    if not (rate_limit is None or isinstance(rate_limit, Keep) or (rate_limit > 0 and math.isfinite(rate_limit))):
        raise ConfigurationError(f"a rate limit of {rate_limit} lets nothing through: pause it, or clear it with None")
    given = {"paused": paused, "breaker": breaker, "rate_limit": rate_limit}
    return {name: value for name, value in given.items() if not isinstance(value, Keep)}


class EventRow(NamedTuple):
    """An event as the view `outbox_event` shows it."""

    event_id: str
    destination: str
    status: Status
    event_type: str
    key: str | None
    attempts: int
    retry_count: int
    last_error: str | None
    next_retry_at: datetime | None
    published_at: datetime | None
    locked_by: str | None


class DeadLetter(NamedTuple):
    """A message given up on."""

    id: int
    event_id: str
    destination: str
    event_type: str
    key: str | None
    payload: bytes
    error: str
    attempts: int
    first_failed_at: datetime | None
    died_at: datetime


Action = Literal["retry", "discard", "reschedule"]


class People(Protocol):
    """What an operator sees and asks for."""

    async def find(self, event_id: str) -> list[EventRow]:
        """Everything known of an event: waiting, delivered and given up."""
        ...

    async def dead(self, *, limit: int = 100, before: int | None = None) -> list[DeadLetter]:
        """Dead letters, the newest first, in keyset pages."""
        ...

    async def retry(self, ids: Sequence[int], *, by: str = "") -> int:
        """Send dead letters again: each goes to the end of its key with its attempts at zero."""
        ...

    async def discard(self, ids: Sequence[int], *, by: str = "") -> int:
        """Drop dead letters for good."""
        ...

    async def ask(
        self,
        action: Action,
        event_id: str,
        destination: str,
        *,
        delay: float = 0,
        by: str = "",
    ) -> int:
        """Ask the lane's owner to retry now, discard, or reschedule a waiting message; returns the request's id."""
        ...


class Inspection(Protocol):
    """How the outbox fares at a glance."""

    async def overview(self) -> Overview:
        """Backlog, dead letters, lanes and relays; cheap whatever the backlog."""
        ...


class Upkeep(Protocol):
    """Retention in small bites."""

    async def prepare(self) -> None:
        """Make room for the history of the coming days, where the store needs that."""
        ...

    async def prune(self, *, history: float | None, dead: float | None, most: int = 1000) -> int:
        """Drop what was delivered or given up longer ago than that many seconds (None keeps it for ever).

        At most `most` rows, or whole days of history; returns how many rows or days went. Never touches what waits.
        """
        ...


class Wakeup(Protocol):
    """The doorbell: it may be lost or spurious; whoever sleeps looks again by himself."""

    async def doze(self, relay: str, seconds: float) -> None:
        """Tell producers that this relay sleeps for so long and wants to be woken."""
        ...

    async def rouse(self, relay: str) -> None:
        """Tell producers that it is awake."""
        ...

    async def wait(self, seconds: float) -> bool:
        """Wait for the doorbell, at most so long; True if it rang."""
        ...


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a store can do beyond the contract; the conformance suite asks, and prints, these."""

    lanes: int
    many_writers: bool
    """Transactions of several producers run side by side."""
    survives_restart: bool
    partitions: bool
    """History is dropped by whole days."""


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
    def people(self) -> People: ...
    @property
    def inspection(self) -> Inspection: ...
    @property
    def upkeep(self) -> Upkeep: ...
    @property
    def wakeup(self) -> Wakeup: ...
    @property
    def schema(self) -> Schema: ...

    def beside(self, *, history: bool | None = None) -> Store:
        """Another store on the same data with connections of its own, for another event loop; whoever asks closes it.

        It has the settings of this one, except that it keeps delivered messages or not as `history` says, if it does.
        """
        ...

    async def aclose(self) -> None:
        """Close every connection; closing twice is fine."""
        ...
