"""What a relay announces: frozen values. Logs, metrics and traces are observers; so are tests.

Without observers nothing is announced per event. A `BatchObserver` receives deliveries per batch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pillarbox.core.message import Message
from pillarbox.core.transport import Address


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayObservation:
    """What a relay announces, with its id."""

    relay: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EventObservation(RelayObservation):
    """What a relay announces about one message for one destination. `address`: where it was sent; None: it was not."""

    message: Message
    destination: str
    address: Address | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayStarted(RelayObservation):
    """A relay starts."""

    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayDisabled(RelayObservation):
    """A relay was asked to run but is disabled by its settings: it delivers nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRequested(RelayObservation):
    """A relay was asked to drain: it fetches no more and waits for what is in flight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayStopped(RelayObservation):
    """A relay stopped; `drained` tells whether everything in flight was settled."""

    drained: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LanesAcquired(RelayObservation):
    """The relay acquired lanes; `crashed` are those of relays that ended without leaving."""

    lanes: tuple[int, ...]
    crashed: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LanesReleased(RelayObservation):
    """The relay released lanes."""

    lanes: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LanesLost(RelayObservation):
    """Another relay owns these lanes: a settlement under their old epoch wrote nothing."""

    lanes: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseLost(RelayObservation):
    """The relay's lease expired or was ended: the relay drops everything in flight."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayStateChanged(RelayObservation):
    """The lanes, the number in flight or the destination states of a relay changed; compared twice per heartbeat."""

    lanes: int
    in_flight: int
    """Messages fetched, and not yet settled or released."""
    breakers: Mapping[str, str]
    """Destination → state."""
    rates: Mapping[str, float]
    """Destination → messages per second, this relay's share; only where there is a limit."""
    paused: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayStalled(RelayObservation):
    """A relay could make progress, but made none for longer than `relay.lease` + 15 s + `relay.poll_interval`."""

    stage: str
    reason: str
    """What is stuck, and the remedy."""
    seconds: float
    """For how long it could have made progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayStallEnded(RelayObservation):
    """A relay that had stalled makes progress again, or there is nothing more that it could do."""

    stage: str
    seconds: float
    """How long it lasted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmptyFetch(RelayObservation):
    """A fetch found nothing to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFetched(RelayObservation):
    """The relay fetched messages."""

    messages: tuple[Message, ...]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending(RelayObservation):
    """The relay is about to send messages."""

    destination: str
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SendOverdue(EventObservation):
    """A handler has not returned within its timeout: its key waits, and its destination counts as unavailable."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EventDelivered(EventObservation):
    """The transport confirmed a message."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSkipped(EventObservation):
    """The ledger or the history shows that a message was sent before: the relay settles it without sending it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRetried(EventObservation):
    """A send failed, or there is no route yet; the relay retries after `delay` seconds. `attempt`: which send it was;
    `counted`: whether it is an attempt or a deferral; `seconds`: how long it took, 0 if nothing was sent."""

    error: str
    attempt: int
    delay: float
    counted: bool
    seconds: float = 0.0
    probe: bool = False
    """It probed a destination that was known to be unavailable; `BreakerChanged` reports that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventDeadLettered(EventObservation):
    """The relay dead-lettered a message; with `blocks` its key is blocked until an operator decides."""

    error: str
    attempt: int
    blocks: bool
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSettled(RelayObservation):
    """The relay wrote decisions."""

    delivered: int
    retried: int
    dead: int
    duplicates: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerChanged(RelayObservation):
    """A destination's breaker changed its state on this relay."""

    destination: str
    state: str
    error: str = ""
    next_probe: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationOverridden(RelayObservation):
    """A relay noticed that an operator changed the override of a destination, or of all of them (`EVERYWHERE`)."""

    destination: str
    paused: bool
    breaker: str | None
    """The breaker state that an operator forced; None: no override."""
    rate_limit: float | None
    """Messages per second, of all relays together; None: as configured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreFailed(RelayObservation):
    """The store could not be reached; the relay retries after `delay` seconds."""

    error: str
    delay: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreRestored(RelayObservation):
    """The store answers again after it could not be reached for `seconds`."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportFailed(RelayObservation):
    """A transport cannot reach its broker, or its topology differs; the relay retries after `delay` seconds."""

    transport: str
    error: str
    delay: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportConnected(RelayObservation):
    """A transport reached its broker and declared its topology: at the start, or after an outage of `seconds`."""

    transport: str
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned(RelayObservation):
    """Retention deleted rows."""

    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRequestsExecuted(RelayObservation):
    """The relay executed operator requests for pending messages."""

    count: int


Observation = (
    RelayStarted
    | RelayDisabled
    | StopRequested
    | RelayStopped
    | LanesAcquired
    | LanesReleased
    | LanesLost
    | LeaseLost
    | RelayStateChanged
    | RelayStalled
    | RelayStallEnded
    | EmptyFetch
    | BatchFetched
    | Sending
    | SendOverdue
    | EventDelivered
    | EventSkipped
    | EventRetried
    | EventDeadLettered
    | BatchSettled
    | BreakerChanged
    | DestinationOverridden
    | StoreFailed
    | StoreRestored
    | TransportFailed
    | TransportConnected
    | Pruned
    | OperatorRequestsExecuted
)
"""What a relay reports to its observers."""
Observer = Callable[[Observation], None]
"""One callable that must neither raise nor block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchDelivered(RelayObservation):
    """The transport confirmed these messages together; for a `BatchObserver` only."""

    destination: str
    messages: tuple[Message, ...]
    seconds: float
    address: Address | None = None

    def events(self) -> list[EventDelivered]:
        """The same, one by one."""
        same: dict[str, Any] = {"relay": self.relay, "destination": self.destination, "address": self.address}
        return [EventDelivered(message=message, seconds=self.seconds, **same) for message in self.messages]


class BatchObserver(ABC):
    """An observer that receives deliveries once per batch, which costs less than once per event."""

    @abstractmethod
    def __call__(self, observation: Observation) -> None:
        """Receive anything but a delivery."""

    @abstractmethod
    def delivered(self, batch: BatchDelivered) -> None:
        """Receive the deliveries of a batch."""


@dataclass(slots=True)
class Announcer:
    """Calls every observer; an exception of one does not stop the relay."""

    observers: list[Observer] = field(default_factory=list)

    def __call__(self, observation: Observation) -> None:
        for observer in self.observers:
            _notify(observer, observation)

    def delivered(self, batch: BatchDelivered) -> None:
        """Announce deliveries to each observer, per batch or per event."""
        events: list[EventDelivered] | None = None
        for observer in self.observers:
            if isinstance(observer, BatchObserver):
                _notify(observer.delivered, batch)
            else:
                for event in (events := events or batch.events()):
                    _notify(observer, event)


def _notify(observer: Callable[[Any], None], observation: Observation | BatchDelivered) -> None:
    try:
        observer(observation)
    except Exception:  # the observer's own bug, and reporting it might fail again
        return
