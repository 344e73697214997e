"""Example observations of each kind, and their log lines."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, get_args

from pillarbox.core.clock import SystemClock
from pillarbox.core.observations import (
    BatchFetched,
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
from pillarbox.telemetry.log_lines import TRACE
from pillarbox.telemetry.logs import RELAY, RelayLog
from tests.unit.relay.messages import message

KINDS: tuple[type[Any], ...] = get_args(Observation)

NOON = datetime(2026, 11, 3, 12, tzinfo=UTC)
ORDER = message(event_id="evt-7", aggregate_id="42", attempts=1, deferrals=1)

DELIVERED = EventDelivered(relay="r", message=ORDER, destination="orders", seconds=0.25)
SKIPPED = EventSkipped(relay="r", message=ORDER, destination="orders")
SENDING = Sending(relay="r", destination="orders", messages=(ORDER, message(event_id="evt-8", aggregate_id=None)))
RETRIED = EventRetried(
    relay="r", message=ORDER, destination="orders", error="RejectedError: no", attempt=3, delay=90, counted=True
)
NACKED = EventRetried(
    relay="r", message=ORDER, destination="orders", error="NackedError: full", attempt=3, delay=90, counted=False
)
PROBED = EventRetried(
    relay="r",
    message=ORDER,
    destination="orders",
    error="UnavailableError: gone",
    attempt=3,
    delay=1,
    counted=False,
    probe=True,
)
DEAD_LETTERED = EventDeadLettered(
    relay="r", message=ORDER, destination="orders", error="RejectedError: no", attempt=11, blocks=False
)
BLOCKS = EventDeadLettered(
    relay="r", message=ORDER, destination="orders", error="RejectedError: no", attempt=11, blocks=True
)
OPENED = BreakerChanged(relay="r", destination="orders", state="open", error="UnavailableError: gone", next_probe=60)

EXAMPLES: list[Observation] = [
    RelayStarted(relay="r", name="relay-a"),
    RelayDisabled(relay="r"),
    StopRequested(relay="r"),
    RelayStopped(relay="r", drained=True),
    RelayStopped(relay="r", drained=False),
    LanesAcquired(relay="r", lanes=(1, 2)),
    LanesAcquired(relay="r", lanes=(1, 2), crashed=(2,)),
    LanesReleased(relay="r", lanes=(1, 2)),
    LanesLost(relay="r", lanes=(1, 2)),
    LeaseLost(relay="r", reason="not renewed in time"),
    RelayStateChanged(relay="r", lanes=64, in_flight=12, breakers={"orders": "open"}, rates={"orders": 250.0}),
    RelayStalled(relay="r", stage="settle", reason="the store refuses results", seconds=31.5),
    RelayStallEnded(relay="r", stage="settle", seconds=40.0),
    EmptyFetch(relay="r"),
    BatchFetched(relay="r", messages=(ORDER,), seconds=0.002),
    SENDING,
    SendOverdue(relay="r", message=ORDER, destination="orders", seconds=31.0),
    DELIVERED,
    SKIPPED,
    RETRIED,
    NACKED,
    PROBED,
    DEAD_LETTERED,
    BLOCKS,
    BatchSettled(relay="r", delivered=497, retried=2, dead=1, duplicates=3, seconds=0.01),
    OPENED,
    BreakerChanged(relay="r", destination="orders", state="closed"),
    DestinationOverridden(relay="r", destination="orders", paused=True, breaker="open", rate_limit=5.0),
    StoreFailed(relay="r", error="connection refused", delay=0.4),
    StoreRestored(relay="r", seconds=3.5),
    TransportFailed(relay="r", transport="rabbit", error="connection refused", delay=0.4),
    TransportConnected(relay="r", transport="rabbit"),
    TransportConnected(relay="r", transport="rabbit", seconds=12.5),
    Pruned(relay="r", count=12),
    OperatorRequestsExecuted(relay="r", count=2),
]


class Noon(SystemClock):
    """A clock on which it is always noon."""

    def now(self) -> datetime:
        return NOON


class _Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@contextmanager
def kept(level: int) -> Iterator[list[logging.LogRecord]]:
    """The records of relay and events from `level` on, logged in the block."""
    handler = _Kept()
    before = RELAY.level
    RELAY.addHandler(handler)
    RELAY.setLevel(level)
    try:
        yield handler.records
    finally:
        RELAY.setLevel(before)
        RELAY.removeHandler(handler)


def lines(*observations: Observation, level: int = TRACE) -> list[logging.LogRecord]:
    """The log lines of these observations, at noon."""
    listener = RelayLog(Noon())
    with kept(level) as records:
        for observation in observations:
            listener(observation)
    return records


def logged(*observations: Observation, level: int = TRACE) -> list[tuple[str, str, str]]:
    """Logger, level and text of each line."""
    return [(record.name, record.levelname, record.getMessage()) for record in lines(*observations, level=level)]
