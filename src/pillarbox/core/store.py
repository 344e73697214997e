"""What a store is: a bundle of facets, each of a few verbs.

    lanes          join · renew · take · release · leave        who works
    messages       read · earlier · headless · aside            what is there to do
    writes         settle · hold · split · note · carry_out     what became of it; every one fenced by epochs
    destinations   report · steering · steer                    how the places behind the transports fare
    people         find · dead · ask · retry · amend · discard · remember · audit     what an operator sees and asks for
    browsing       events · letters · details · show            what an operator leafs through
    archive        stale · read · drop                          old rows on their way out by way of a file
    replays        count · chosen · begin · find · copy         what was delivered goes out once more
    inspection     overview · consumers                         how the outbox and the inbox fare at a glance
    diagnosis      checks · tried · footprint                   what is wrong with the store itself, and what is stuck
    upkeep         prepare · prune                              partitions, retention
    ledger         begin                                        what was sent before, where that is kept
    wakeup         doze · rouse · wait                          notifications: a hint, never relied on
    schema         sql · apply · check · status                 the tables themselves

Recording is not here: it runs in the caller's transaction and never touches a store's own connections.
Every verb raises StoreUnavailableError when the database cannot be reached, and SchemaError when the tables are not
there. All times are told and compared by the database's clock.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from pillarbox.core.archive import Archive
from pillarbox.core.audit import EVERYTHING, NOTHING, AuditFilter, AuditPage
from pillarbox.core.browsing import Browsing
from pillarbox.core.diagnosis import Diagnosis
from pillarbox.core.fetch import Fetched, Look
from pillarbox.core.keys import Keys
from pillarbox.core.lane import Epochs, InHand, Lease, RelayCard, Renewal, Session, Settled
from pillarbox.core.ledger import Before, LedgerKind
from pillarbox.core.message import Held, Probe, Slot
from pillarbox.core.outcome import Resolved, Split, Verdict
from pillarbox.core.overview import COUNTED, ConsumerView, Overview, RelayView
from pillarbox.core.people import Action, DeadLetter, EventRow
from pillarbox.core.replay import Replays
from pillarbox.core.retention import Retention
from pillarbox.core.schema import SchemaStatus
from pillarbox.core.statements import StatementSet
from pillarbox.core.stats import Stats
from pillarbox.core.steering import KEEP, Forced, Keep, Steering


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

    async def release(self, relay: str, epochs: Epochs) -> None:
        """Give these lanes back; those under another epoch are somebody else's and stay so."""
        ...

    async def leave(self, relay: str) -> None:
        """Give everything back and be gone. Leaving twice is fine."""
        ...

    async def drain(self, relay: str, *, by: str = "") -> list[str]:
        """Ask a relay, by its id or its name, or `EVERY_RELAY`, to drain; returns the ids of those that were asked."""
        ...


class CarriedOut(NamedTuple):
    """What became of requests of operators."""

    done: int
    """How many requests were closed."""
    deferred: list[tuple[int, str]]
    """Places of messages in flight for which a request is open."""


class Headless(NamedTuple):
    """A bite of the search for lines that wait behind a head which is no longer there."""

    slots: list[Slot]
    after: Slot | None
    """Where the next bite goes on; None once every line was looked at."""


class Messages(Protocol):
    """What there is to do. Reads lock nothing."""

    async def read(self, look: Look) -> Fetched:
        """The messages of one look, each line in order, within its bounds; earlier lanes of the look first, where a
        bound cuts it off."""
        ...

    async def earlier(self, probes: Sequence[Probe]) -> list[bool]:
        """For each probe: does an earlier message of that key wait for that destination, or for ''?"""
        ...

    async def headless(self, lanes: Sequence[int], *, limit: int, after: Slot | None = None) -> Headless:
        """Look at up to `limit` lines beyond `after` for those that wait although nothing holds them."""
        ...

    async def aside(self, lanes: Sequence[int]) -> list[str]:
        """The destinations for which messages of these lanes were put aside, whether anybody here knows them or not."""
        ...


class Writes(Protocol):
    """What became of it. Each verb locks its lanes, compares epochs and writes in one statement.

    A message whose new (event id, destination) already waits is a repeat: it is dropped if its bytes are the
    same, else it becomes a dead letter; it is never an error.
    """

    async def settle(self, epochs: Epochs, verdicts: Sequence[Verdict]) -> Settled:
        """Write verdicts. The first settlement after a takeover clears the lane's crashes.

        A verdict concerns the row that was read: one with the same event id and destination in another place, such as
        a dead letter that was edited and sent again meanwhile, is left alone. So do all verbs here.

        What counts a try is written only if the message has failed as often as it says itself: a verdict that
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


class People(Protocol):
    """What an operator sees and asks for.

    Each message that is changed is an entry of the audit. What a person does to many at once is one: `remember` begins
    it with a count of 0 and all of them `left`, and what is done under its number as `act` makes it grow, in the same
    transaction.
    """

    async def find(self, event_id: str) -> list[EventRow]:
        """Everything known of an event: waiting, delivered and given up."""
        ...

    async def dead(self, *, limit: int = 100, before: int | None = None) -> list[DeadLetter]:
        """Dead letters, the newest first, in keyset pages."""
        ...

    async def retry(self, ids: Sequence[int], *, by: str = "", act: int | None = None) -> int:
        """Send dead letters again: each goes to the end of its key with its attempts at zero."""
        ...

    async def amend(
        self, letter: int, *, payload: bytes | None = None, headers: Mapping[str, str] | None = None, by: str = ""
    ) -> bool:
        """`retry` for one letter, with another payload or other headers; None leaves them as they are.

        It says by a header that it was edited, see `amendment`. False, and nothing done, if the letter is gone or its
        event already waits for the same destination.
        """
        ...

    async def discard(self, ids: Sequence[int], *, by: str = "", act: int | None = None) -> int:
        """Drop dead letters for good."""
        ...

    async def ask(
        self,
        action: Action,
        events: Sequence[tuple[str, str]],
        *,
        delay: float = 0,
        by: str = "",
        act: int | None = None,
    ) -> list[int]:
        """Ask the owners of their lanes to do something with waiting messages, each an event id and a destination.

        Returns the ids of the requests, in the same order. What comes of them is in the audit once it is done.
        """
        ...

    async def remember(
        self, what: str, subject: str = "", *, count: int = 1, detail: Mapping[str, Any] = NOTHING, by: str = ""
    ) -> int:
        """Enter in the audit what a person did, or begins to do; returns the number of the entry."""
        ...

    async def audit(
        self, wanted: AuditFilter = EVERYTHING, *, limit: int = 100, before: int | None = None
    ) -> AuditPage:
        """Who did what, the newest first; looks at a bounded number of entries for one page."""
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


class Inspection(Protocol):
    """How the outbox fares at a glance."""

    async def overview(self, *, counted: int = COUNTED) -> Overview:
        """Backlog, dead letters, blocked keys, lanes and relays; cheap whatever the backlog, of which no more than
        `counted` are counted one by one."""
        ...

    async def relays(self) -> list[RelayView]:
        """The relays alone, as `overview` shows them; one statement."""
        ...

    async def consumers(self, *, limit: int = 100) -> list[ConsumerView]:
        """Who has receipts in the inbox or tallied lately, by name, and how many; cheap however many there are."""
        ...


class Upkeep(Protocol):
    """Retention in small bites."""

    async def prepare(self) -> None:
        """Make room for the history of the coming days, where the store needs that."""
        ...

    async def prune(self, kept: Retention, *, most: int = 1000) -> int:
        """Drop what was done with longer ago than it is kept.

        At most `most` rows of each kind, or whole days of history; returns how many rows or days went. Never touches
        what waits.
        """
        ...


class Wakeup(Protocol):
    """Wake-up of a sleeping relay by producers: a hint, lost or spurious at times: the relay also fetches itself."""

    @property
    def notifies(self) -> bool:
        """Whether every commit with an event notifies this relay now. When that ends, `wait` returns True."""
        ...

    async def doze(self, relay: str, seconds: float) -> None:
        """Ask producers to notify this relay, at least for so long."""
        ...

    async def rouse(self, relay: str) -> None:
        """Ask producers not to notify this relay any more."""
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
    def browsing(self) -> Browsing: ...
    @property
    def archive(self) -> Archive: ...
    @property
    def replays(self) -> Replays: ...
    @property
    def inspection(self) -> Inspection: ...
    @property
    def diagnosis(self) -> Diagnosis: ...
    @property
    def keys(self) -> Keys: ...
    @property
    def stats(self) -> Stats: ...
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
