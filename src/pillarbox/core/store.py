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

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from pillarbox.core.fetch import Fetched, FetchQuery
from pillarbox.core.lane import Epochs, InHand, Lease, RelayCard, Renewal, Session, Settled
from pillarbox.core.ledger import Before, LedgerKind
from pillarbox.core.message import Held, KeyQueue, Probe
from pillarbox.core.outcome import Decision, Resolved, Split
from pillarbox.core.retention import Retention
from pillarbox.core.schema import SchemaStatus
from pillarbox.core.statements import StatementSet
from pillarbox.core.statistics import Backlog, Carried, Level

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


class Lanes(Protocol):
    """Who works. One lease per relay; lanes change only with their owner."""

    count: int

    async def join(self, card: RelayCard, *, lease: float) -> None:
        """Begin to live: a row for this relay whose lease runs for `lease` seconds."""
        ...

    async def renew(
        self,
        relay: str,
        *,
        lease: float,
        in_hand: Sequence[InHand] = (),
        breakers: Mapping[str, str] = {},
        stalled: str = "",
    ) -> Renewal | None:
        """Live on, and tell the others what is in hand, how this relay's breakers stand (destination → state)
        and, if it is `stalled`, why it makes no progress.

        None means that the relay was declared dead: everything is lost, drop what is in hand. The connection that
        renews is the relay's session, by which others notice its death before its lease ends.
        """
        ...

    async def ended(self, relay: str) -> list[Session]:
        """The sessions of other relays that ended although their lease runs."""
        ...

    async def expire(self, sessions: Sequence[Session]) -> int:
        """End the leases of relays whose session, that very one, is still gone; returns how many.

        A relay that lives all the same has lost nothing before another one takes its lanes, under a new epoch.
        """
        ...

    async def session_ended(self) -> None:
        """Return once the session of the last renewal has ended; never where a store cannot tell."""
        ...

    async def take(self, relay: str, *, most: int) -> list[Lease]:
        """Take up to `most` lanes that are free or whose owner's lease ended; each under a new epoch.

        Never waits for a lane that somebody settles right now, and gives nothing to a relay that is not alive.
        A lane taken from an owner that did not leave counts one crash more.
        """
        ...

    async def release(self, relay: str, epochs: Epochs | None = None) -> None:
        """Give these lanes back; those under another epoch belong to another relay and stay.

        Without `epochs` the relay gives all its lanes back and leaves. To leave twice is fine.
        """
        ...


class CarriedOut(NamedTuple):
    """What became of requests of operators."""

    done: int
    """How many requests were closed."""
    deferred: list[tuple[int, str]]
    """Positions of messages in flight for which a request is open."""


class OrphanedQueues(NamedTuple):
    """A step of the search for ordering queues whose waiting messages have nothing before them any more."""

    queues: list[KeyQueue]
    after: KeyQueue | None
    """Where the next step continues; None once every queue was visited."""


class Messages(Protocol):
    """What there is to do. Reads lock nothing."""

    async def read(self, query: FetchQuery) -> Fetched:
        """The messages of one fetch, each ordering queue in order, within its bounds; earlier lanes of the query first,
        where a bound cuts it off."""
        ...

    async def earlier(self, probes: Sequence[Probe]) -> list[bool]:
        """For each probe: is an earlier message of that key pending for that destination, or for ''?"""
        ...

    async def orphaned_queues(
        self, lanes: Sequence[int], *, limit: int, after: KeyQueue | None = None
    ) -> OrphanedQueues:
        """Visit up to `limit` ordering queues beyond `after`; returns those that nothing holds back any more."""
        ...

    async def parked_destinations(self, lanes: Sequence[int]) -> list[str]:
        """The destinations for which messages of these lanes are parked, whether or not this relay knows them."""
        ...


class Writes(Protocol):
    """What became of it. Each verb locks its lanes, compares epochs and writes in one statement.

    A message whose new (event id, destination) already waits is a repeat: it is dropped if its bytes are the
    same, else it becomes a dead letter; it is never an error.
    """

    async def settle(self, epochs: Epochs, decisions: Sequence[Decision]) -> Settled:
        """Write decisions. The first settlement after a takeover clears the lane's crashes.

        A decision concerns the row that was read: one with the same event id and destination in another place, such as
        a dead letter that was edited and sent again meanwhile, is left alone. So do all verbs here.

        What counts a try is written only if the message has failed as often as it says itself: a decision that
        is written again, because the answer to the first time was lost, is not charged twice. The same goes for `note`.
        """
        ...

    async def hold(self, epochs: Epochs, messages: Sequence[Resolved], held: Held) -> Settled:
        """Put messages behind their key or aside for their destination, out of the reader's way."""
        ...

    async def split(self, epochs: Epochs, splits: Sequence[Split]) -> Settled:
        """Replace each message by one per destination, in its place."""
        ...

    async def note(
        self, epochs: Epochs, messages: Sequence[Resolved], *, error: str, charge: bool = False, noted: bool = False
    ) -> Settled:
        """Note a try that failed, or that is about to begin, and leave the messages where they are.

        `noted`: it was charged before it began, and that is taken back now unless it is to be charged.
        They carry their resolved destination from then on: whoever keeps one in hand goes on with `message.to(…)`.
        """
        ...

    async def carry_out(
        self, epochs: Epochs, *, limit: int = 100, in_flight: Collection[tuple[int, str]] = ()
    ) -> CarriedOut:
        """Do what operators asked for pending messages of these lanes.

        A request for a message in flight (by its place) stays open until that message is decided: what is being sent
        cannot be discarded, and what is changed in the table would be sent as it was.
        """
        ...

    async def request_retry(self, events: Sequence[tuple[str, str]], *, by: str) -> None:
        """Ask the owners of their lanes to retry pending messages, each an event id and a destination."""
        ...


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
