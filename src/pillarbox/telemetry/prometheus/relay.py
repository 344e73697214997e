"""Metrics of relays. One observer serves every relay of a process: counters add up, and gauges are summed per scrape.

A batch of deliveries costs one update per series that it changes; the labelled children are looked up once.
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
    OperatorRequestsExecuted,
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
from pillarbox.telemetry.prometheus.relay_gauges import RelayGauges

_BATCH = (1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000)


@dataclass(frozen=True, slots=True)
class _Series:
    """The series of one event type and destination."""

    published: Callable[[float], None]
    failed: Callable[[], None]
    retried: Callable[[], None]
    dead: Callable[[], None]
    took: Callable[[Sequence[float]], None]
    lag: Callable[[Sequence[float]], None]


class RelayMetrics(BatchObserver):
    """An observer for `Relay(observers=[…])`; `registry` is what to serve.

    Two observers need two registries: share one observer between the relays of a process instead.
    """

    def __init__(self, registry: CollectorRegistry | None = None, *, clock: Clock | None = None) -> None:
        """registry: default: a new one, so that names do not collide."""
        self.registry = registry if registry is not None else CollectorRegistry()
        self._clock = clock or SystemClock()
        self._destination, self._event_type = Bounded(MOST_DESTINATIONS), Bounded(MOST_EVENT_TYPES)
        self._series: dict[tuple[str, str], _Series] = {}
        self._gauges = RelayGauges(self._destination)
        self.registry.register(self._gauges)
        self._published = self._per_destination("outbox_published", "Messages that a transport confirmed.")
        self._failed = self._per_destination("outbox_failed", "Failed sends, retried or dead-lettered.")
        self._retries = self._per_destination("outbox_retries", "Failed sends after which the message is retried.")
        self._dead = self._per_destination("outbox_dead_lettered", "Dead-lettered messages.")
        self._duration = BatchHistogram(
            "outbox_publish_duration_seconds",
            "Time from the send of a batch to its confirmation, for each delivered message.",
            ["destination"],
            buckets=WORK,
            registry=self.registry,
        )
        self._lag = BatchHistogram(
            "outbox_lag_seconds",
            "Time from the recording of an event, or from when it was due, to its confirmation.",
            ["destination"],
            buckets=LAG,
            registry=self.registry,
        )
        self._batch_size = Histogram("outbox_batch_size", "Messages per fetch.", buckets=_BATCH, registry=self.registry)
        self._fetching = Histogram(
            "outbox_fetch_duration_seconds",
            "Duration of fetches that returned messages.",
            buckets=WORK,
            registry=self.registry,
        )
        self._settling = Histogram(
            "outbox_settle_duration_seconds", "Duration of settlements.", buckets=WORK, registry=self.registry
        )
        self._duplicates = Counter(
            "outbox_duplicates",
            "Duplicates settled without a send: found in the ledger, or in the table.",
            ["found_in"],
            registry=self.registry,
        )
        self._in_ledger, self._in_table = (self._duplicates.labels(where) for where in ("ledger", "table"))
        self._fenced = self._plain(
            "outbox_fenced_settlements", "Settlements that wrote nothing: another relay owns the lane."
        )
        self._takeovers = self._plain("outbox_takeovers", "Lanes acquired from crashed relays.")
        self._overdue = Counter(
            "outbox_sends_overdue",
            "Handler calls that exceeded their timeout.",
            ["destination"],
            registry=self.registry,
        )
        self._leases_lost = self._plain("outbox_leases_lost", "Leases that ended before they were renewed.")
        self._store_failures = self._plain("outbox_store_failures", "Times that the store was unreachable.")
        self._transport_failures = Counter(
            "outbox_transport_failures",
            "Failed connection attempts of a transport.",
            ["transport"],
            registry=self.registry,
        )
        self._pruned = self._plain("outbox_pruned", "Rows that retention deleted.")

    def __call__(self, observation: Observation) -> None:
        """Count the observation."""
        match observation:  # the most frequent cases first
            case Sending() | EmptyFetch():
                return
            case BatchFetched(messages=messages, seconds=seconds):
                self._batch_size.observe(len(messages))
                self._fetching.observe(seconds)
            case BatchSettled(duplicates=duplicates, seconds=seconds):
                self._settling.observe(seconds)
                self._in_table.inc(duplicates)
            case EventDelivered(relay=relay, message=message, destination=destination, seconds=seconds):
                self.delivered(
                    BatchDelivered(relay=relay, destination=destination, messages=(message,), seconds=seconds)
                )
            case EventRetried(message=message, destination=destination):
                series = self._series_of(destination, message.event_type)
                series.failed()
                series.retried()
            case EventDeadLettered(message=message, destination=destination):
                series = self._series_of(destination, message.event_type)
                series.failed()
                series.dead()
            case EventSkipped():
                self._in_ledger.inc()
            case RelayStateChanged() | RelayStarted() | RelayStopped() | RelayStalled() | RelayStallEnded():
                self._gauges.update(observation)
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
            case RelayDisabled() | StopRequested() | LanesReleased() | OperatorRequestsExecuted():
                return
            case StoreRestored() | TransportConnected():
                return
            case BreakerChanged() | DestinationOverridden():
                return  # RelayStateChanged carries the current state
            case _:
                assert_never(observation)

    def delivered(self, batch: BatchDelivered) -> None:
        """Count the deliveries of a batch together."""
        counts: dict[str, int] = {}  # for one event, a collections.Counter would cost more than all the rest
        for message in batch.messages:
            counts[message.event_type] = counts.get(message.event_type, 0) + 1
        for event_type, count in counts.items():
            self._series_of(batch.destination, event_type).published(count)
        # Durations have no label for the event type: any series of the destination has the same histograms.
        series = self._series_of(batch.destination, batch.messages[0].event_type)
        series.took([batch.seconds] * len(batch.messages))
        now = self._clock.now()
        series.lag([_lag(message, now) for message in batch.messages])

    def _series_of(self, destination: str, event_type: str) -> _Series:
        if (series := self._series.get((destination, event_type))) is not None:
            return series
        labels = self._destination(destination), self._event_type(event_type)
        series = self._series.get(labels) or _Series(
            published=self._published.labels(*labels).inc,
            failed=self._failed.labels(*labels).inc,
            retried=self._retries.labels(*labels).inc,
            dead=self._dead.labels(*labels).inc,
            took=self._duration.labels(labels[0]).observe_all,
            lag=self._lag.labels(labels[0]).observe_all,
        )
        self._series[labels] = series  # keyed by the bounded labels, so that the dictionary stays bounded, too
        return series

    def _per_destination(self, name: str, about: str) -> Counter:
        return Counter(name, about, ["destination", "event_type"], registry=self.registry)

    def _plain(self, name: str, about: str) -> Counter:
        return Counter(name, about, registry=self.registry)


def _lag(message: Message, now: datetime) -> float:
    since = message.recorded_at
    if message.available_at is not None and not message.failures:
        since = message.available_at
    # The clocks of the database and of this machine may differ slightly.
    return max(0.0, (now - since).total_seconds())
