"""What relays announce, as metrics. One listener serves every relay of a process: counters add up, and what relays
hold is added up when it is asked for.

A batch of deliveries costs one update of each series that it changes; children are bound once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

from pillarbox.core.clock import Clock, SystemClock
from pillarbox.core.message import Message
from pillarbox.core.observations import (
    BatchDelivered,
    BatchFetched,
    BatchObserver,
    BatchSettled,
    BreakerChanged,
    DestinationOverridden,
    EmptyFetch,
    EventDeadLettered,
    EventDelivered,
    EventRetried,
    EventSkipped,
    LanesAcquired,
    LanesLost,
    LanesReleased,
    LeaseLost,
    Observation,
    OperatorRequestsApplied,
    Pruned,
    RelayDisabled,
    RelayStalled,
    RelayStallEnded,
    RelayStarted,
    RelayStateChanged,
    RelayStopped,
    Sending,
    SendOverdue,
    StopRequested,
    StoreFailed,
    StoreRestored,
    TransportConnected,
    TransportFailed,
)
from pillarbox.telemetry.prometheus.client import (
    LAG,
    MOST_DESTINATIONS,
    MOST_EVENT_TYPES,
    WORK,
    Bounded,
    CollectorRegistry,
    Counter,
    Histogram,
)
from pillarbox.telemetry.prometheus.histogram import BatchHistogram
from pillarbox.telemetry.prometheus.holdings import Holdings

_BATCH = (1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000)


@dataclass(frozen=True, slots=True)
class _Way:
    """What is counted for the events of one type on their way to one destination."""

    published: Callable[[float], None]
    failed: Callable[[], None]
    retried: Callable[[], None]
    dead: Callable[[], None]
    took: Callable[[Sequence[float]], None]
    lag: Callable[[Sequence[float]], None]


class RelayMetrics(BatchObserver):
    """An observer for `Relay(observers=[…])`; `registry` is what to serve.

    Two listeners need two registries: give the same one to every relay of a process instead.
    """

    def __init__(self, registry: CollectorRegistry | None = None, *, clock: Clock | None = None) -> None:
        """registry: default: one of its own, so that nothing collides."""
        self.registry = registry if registry is not None else CollectorRegistry()
        self._clock = clock or SystemClock()
        self._destination, self._event_type = Bounded(MOST_DESTINATIONS), Bounded(MOST_EVENT_TYPES)
        self._ways: dict[tuple[str, str], _Way] = {}
        self._holdings = Holdings(self._destination)
        self.registry.register(self._holdings)
        self._published = self._per_way("outbox_published", "Messages that a transport confirmed.")
        self._failed = self._per_way("outbox_failed", "Sends that failed, whatever became of the message.")
        self._retries = self._per_way("outbox_retries", "Failed sends after which the message comes again.")
        self._dead = self._per_way("outbox_dead", "Messages given up on.")
        self._duration = BatchHistogram(
            "outbox_publish_duration_seconds",
            "From the send of a batch to its confirmation, for each message delivered.",
            ["destination"],
            buckets=WORK,
            registry=self.registry,
        )
        self._lag = BatchHistogram(
            "outbox_lag_seconds",
            "From the recording of an event, or from when it was due, to its confirmation.",
            ["destination"],
            buckets=LAG,
            registry=self.registry,
        )
        self._batch_size = Histogram(
            "outbox_batch_size", "Messages that a read brought.", buckets=_BATCH, registry=self.registry
        )
        self._reading = Histogram(
            "outbox_read_duration_seconds", "Reads that brought messages.", buckets=WORK, registry=self.registry
        )
        self._settling = Histogram(
            "outbox_settle_duration_seconds", "Settlements.", buckets=WORK, registry=self.registry
        )
        self._duplicates = Counter(
            "outbox_duplicates",
            "Repeats that were settled without being sent: known to the ledger, or met in the table.",
            ["found_in"],
            registry=self.registry,
        )
        self._in_ledger, self._in_table = (self._duplicates.labels(where) for where in ("ledger", "table"))
        self._fenced = self._plain("outbox_fenced_settlements", "Settlements that met a lane which is somebody else's.")
        self._takeovers = self._plain("outbox_takeovers", "Lanes taken from owners that did not leave.")
        self._overdue = Counter(
            "outbox_sends_overdue",
            "Calls of handlers that did not return in time.",
            ["destination"],
            registry=self.registry,
        )
        self._leases_lost = self._plain("outbox_leases_lost", "Leases that ended before they were renewed.")
        self._store_failures = self._plain("outbox_store_failures", "Times that the store could not be reached.")
        self._transport_failures = Counter(
            "outbox_transport_failures",
            "Attempts of a transport to reach its broker that failed.",
            ["transport"],
            registry=self.registry,
        )
        self._pruned = self._plain("outbox_pruned", "Rows that retention dropped.")

    def __call__(self, observation: Observation) -> None:
        """Count it."""
        match observation:  # what comes most often is asked for first
            case Sending() | EmptyFetch():
                return
            case BatchFetched(messages=messages, seconds=seconds):
                self._batch_size.observe(len(messages))
                self._reading.observe(seconds)
            case BatchSettled(duplicates=duplicates, seconds=seconds):
                self._settling.observe(seconds)
                self._in_table.inc(duplicates)
            case EventDelivered(relay=relay, message=message, destination=destination, seconds=seconds):
                self.delivered(
                    BatchDelivered(relay=relay, destination=destination, messages=(message,), seconds=seconds)
                )
            case EventRetried(message=message, destination=destination):
                way = self._way(destination, message.event_type)
                way.failed()
                way.retried()
            case EventDeadLettered(message=message, destination=destination):
                way = self._way(destination, message.event_type)
                way.failed()
                way.dead()
            case EventSkipped():
                self._in_ledger.inc()
            case RelayStateChanged() | RelayStarted() | RelayStopped() | RelayStalled() | RelayStallEnded():
                self._holdings.heard(observation)
            case LanesAcquired(crashed=crashed):
                self._takeovers.inc(len(crashed))
            case LanesLost():
                self._fenced.inc()
            case SendOverdue(destination=destination):
                self._overdue.labels(self._destination(destination)).inc()
            case LeaseLost():
                self._leases_lost.inc()
            case StoreFailed():
                self._store_failures.inc()
            case TransportFailed(transport=transport):
                self._transport_failures.labels(transport).inc()
            case Pruned(count=count):
                self._pruned.inc(count)
            case RelayDisabled() | StopRequested() | LanesReleased() | OperatorRequestsApplied():
                return
            case StoreRestored() | TransportConnected():
                return
            case BreakerChanged() | DestinationOverridden():
                return  # what holds now is told by RelayStateChanged
            case _:
                assert_never(observation)

    def delivered(self, batch: BatchDelivered) -> None:
        """Count them together."""
        counts: dict[str, int] = {}  # a collections.Counter costs more than all the rest where there is one event
        for message in batch.messages:
            counts[message.event_type] = counts.get(message.event_type, 0) + 1
        for event_type, count in counts.items():
            self._way(batch.destination, event_type).published(count)
        # Durations are counted by destination only: any way that leads there will do.
        way = self._way(batch.destination, batch.messages[0].event_type)
        way.took([batch.seconds] * len(batch.messages))
        now = self._clock.now()
        way.lag([_lag(message, now) for message in batch.messages])

    def _way(self, destination: str, event_type: str) -> _Way:
        if (way := self._ways.get((destination, event_type))) is not None:
            return way
        labels = self._destination(destination), self._event_type(event_type)
        way = self._ways.get(labels) or _Way(
            published=self._published.labels(*labels).inc,
            failed=self._failed.labels(*labels).inc,
            retried=self._retries.labels(*labels).inc,
            dead=self._dead.labels(*labels).inc,
            took=self._duration.labels(labels[0]).observe_all,
            lag=self._lag.labels(labels[0]).observe_all,
        )
        self._ways[labels] = way  # by its labels only: what is beyond their bound must not be remembered
        return way

    def _per_way(self, name: str, about: str) -> Counter:
        return Counter(name, about, ["destination", "event_type"], registry=self.registry)

    def _plain(self, name: str, about: str) -> Counter:
        return Counter(name, about, registry=self.registry)


def _lag(message: Message, now: datetime) -> float:
    since = message.recorded_at
    if message.available_at is not None and not message.failures:
        since = message.available_at
    # The database's clock and this one may differ by a little.
    return max(0.0, (now - since).total_seconds())
