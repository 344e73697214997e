"""What the system announces: frozen values. Logs, metrics and traces are listeners; so are tests.

An observer is one callable that must neither raise nor block. Nothing is announced per event unless somebody listens
for it, and deliveries not even then if the observer is a `BatchObserver`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from pillarbox.core.message import Message

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayStarted:
    """A relay begins to work."""

    relay: str
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelaySwitchedOff:
    """A relay was asked to run but is switched off by its settings: it carries nothing."""

    relay: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRequested:
    """A relay was asked to drain: it reads no more and waits for what is in flight."""

    relay: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayStopped:
    """A relay is gone; `drained` tells whether everything in flight was settled."""

    relay: str
    drained: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LanesTaken:
    """Lanes came into this relay's hands; `crashed` of them from owners that did not leave."""

    relay: str
    lanes: tuple[int, ...]
    crashed: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LanesReleased:
    """Lanes were given back."""

    relay: str
    lanes: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LanesLost:
    """Somebody else owns these lanes by now: a settlement under their old epoch wrote nothing."""

    relay: str
    lanes: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseLost:
    """The relay was declared dead, or could not renew in time: everything in hand is dropped."""

    relay: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayTended:
    """What a relay holds is not what it held before; it is compared twice per heartbeat."""

    relay: str
    lanes: int
    in_hand: int
    """Messages read, and not yet settled or let go of."""
    breakers: Mapping[str, str]
    """Destination → state."""
    rates: Mapping[str, float]
    """Destination → messages per second, this relay's share; only where there is a limit."""
    paused: frozenset[str] = frozenset()
    """Destinations that a person paused; `EVERYWHERE` stands for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayStalled:
    """A relay is alive and could make progress, but has made none for longer than its bound: `relay.lease` + 15 s +
    `relay.poll_interval`. Announced once when it begins, and once more if another stage stalls."""

    relay: str
    stage: str
    """`fetch`, `send` or `settle`."""
    reason: str
    """What does not happen, and what to do."""
    seconds: float
    """For how long it could have made progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayStallEnded:
    """A relay that had stalled makes progress again, or there is nothing more that it could do."""

    relay: str
    stage: str
    seconds: float
    """How long it lasted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookedInVain:
    """A look found nothing to do."""

    relay: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRead:
    """Messages came into hand."""

    relay: str
    messages: tuple[Message, ...]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """Messages are about to be sent."""

    relay: str
    destination: str
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SendOverdue:
    """A handler has not returned although its time is up: the event keeps its key until it does, and its destination
    counts as unavailable."""

    relay: str
    message: Message
    destination: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EventDelivered:
    """The transport confirmed a message."""

    relay: str
    message: Message
    destination: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSkipped:
    """The ledger or the history knows that a message was sent before: it is settled without being sent again."""

    relay: str
    message: Message
    destination: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRetried:
    """A send failed, or there is no route yet; the message comes again after `delay` seconds.

    `attempt` tells which send it was, whether or not it is `charged` against the attempts.
    """

    relay: str
    message: Message
    destination: str
    error: str
    attempt: int
    delay: float
    charged: bool
    seconds: float = 0.0
    """How long the send took; 0 if nothing was sent."""
    probe: bool = False
    """It went to a destination that was known to be unavailable: the breaker's line tells it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventDied:
    """A message was given up on; with `blocks` its key waits for a person."""

    relay: str
    message: Message
    destination: str
    error: str
    attempt: int
    blocks: bool
    seconds: float = 0.0
    """How long the last send took; 0 if nothing was sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSettled:
    """Verdicts were written."""

    relay: str
    delivered: int
    retried: int
    dead: int
    duplicates: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerChanged:
    """A destination's breaker changed its state on this relay."""

    relay: str
    destination: str
    state: str
    error: str = ""
    next_try: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationSteered:
    """A relay noticed that people want something else of a destination, or of all of them (`EVERYWHERE`)."""

    relay: str
    destination: str
    paused: bool
    breaker: str | None
    """The state that a person holds it in; None: nobody does."""
    rate_limit: float | None
    """Messages per second, of all relays together; None: as configured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreFailed:
    """The store could not be reached; it is tried again after `delay` seconds."""

    relay: str
    error: str
    delay: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreRestored:
    """The store answers again after it could not be reached for `seconds`."""

    relay: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportFailed:
    """A transport cannot reach its broker, or the topology there is not as configured; the relay tries again after
    `delay` seconds. Announced after each attempt."""

    relay: str
    transport: str
    error: str
    delay: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportConnected:
    """A transport reached its broker and declared its topology: at the start, or after an outage of `seconds`."""

    relay: str
    transport: str
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """Retention dropped something."""

    relay: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestsCarriedOut:
    """What people asked for waiting messages was done."""

    relay: str
    count: int


Observation = (
    RelayStarted
    | RelaySwitchedOff
    | StopRequested
    | RelayStopped
    | LanesTaken
    | LanesReleased
    | LanesLost
    | LeaseLost
    | RelayTended
    | RelayStalled
    | RelayStallEnded
    | LookedInVain
    | BatchRead
    | Sending
    | SendOverdue
    | EventDelivered
    | EventSkipped
    | EventRetried
    | EventDied
    | BatchSettled
    | BreakerChanged
    | DestinationSteered
    | StoreFailed
    | StoreRestored
    | TransportFailed
    | TransportConnected
    | Pruned
    | RequestsCarriedOut
)
Observer = Callable[[Observation], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchDelivered:
    """The transport confirmed these messages together. Observers that are no `BatchObserver` are told an
    `EventDelivered` for each."""

    relay: str
    destination: str
    messages: tuple[Message, ...]
    seconds: float

    def events(self) -> list[EventDelivered]:
        """The same, one by one."""
        return [
            EventDelivered(relay=self.relay, message=message, destination=self.destination, seconds=self.seconds)
            for message in self.messages
        ]


class BatchObserver(ABC):
    """An observer that is told deliveries once per batch, which costs it less than once per event. It is told
    everything else as any observer is."""

    @abstractmethod
    def __call__(self, observation: Observation) -> None:
        """Take anything but a delivery of the relay."""

    @abstractmethod
    def delivered(self, batch: BatchDelivered) -> None:
        """Take the deliveries of a batch."""


@dataclass(slots=True)
class Announcer:
    """Tells every observer; a broken one is no reason to stop carrying events."""

    observers: list[Observer] = field(default_factory=list)

    def __call__(self, observation: Observation) -> None:
        for observer in self.observers:
            _tell(observer, observation)

    def delivered(self, batch: BatchDelivered) -> None:
        """Tell deliveries, to each observer the way it takes them."""
        events: list[EventDelivered] | None = None
        for observer in self.observers:
            if isinstance(observer, BatchObserver):
                _tell(observer.delivered, batch)
            else:
                events = batch.events() if events is None else events
                for event in events:
                    _tell(observer, event)


def _tell(observer: Callable[[T], None], observation: T) -> None:
    try:
        observer(observation)
    except Exception:  # a listener's own trouble, and telling it might fail again
        return
