"""Log lines: where they go, and what is said about the relay and the consumers, in the words of this service."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime, timedelta

from apps.common import correlation
from apps.common.timestamps import timestamp
from pillarbox.observations import (
    BatchFetched,
    BatchSettled,
    BreakerChanged,
    ConsumerObservation,
    ConsumerStarted,
    ConsumerStopped,
    DuplicateSkipped,
    EmptyFetch,
    EventDeadLettered,
    EventDelivered,
    EventProcessed,
    EventRetried,
    HandlingFailed,
    LeaseLost,
    MessageDeadLettered,
    Observation,
    RelayStarted,
    RelayStopped,
    Sending,
    SourceFailed,
    SourceRestored,
    StopRequested,
    StoreFailed,
    StoreRestored,
    TransportConnected,
    TransportFailed,
)
from pillarbox.telemetry.log_lines import LineFormatter

TRACE = 5
"""Below DEBUG: what happens again and again while nothing happens."""
logging.addLevelName(TRACE, "TRACE")

FORMAT = "%(asctime)s %(levelname)s %(name)s [%(correlation_id)s] %(message)s"

_relay = logging.getLogger("apps.ingestion.relay")
_consumer = logging.getLogger("apps.ingestion.consumer")


def configure(level: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(correlation.Stamp())
    handler.setFormatter(LineFormatter(FORMAT))
    logging.basicConfig(level=level, handlers=[handler])
    # What these say about a lost connection, the lines below say shorter.
    logging.getLogger("pika").setLevel(logging.CRITICAL)
    logging.getLogger("alembic").setLevel(logging.WARNING)


def log_relay(told: Observation) -> None:
    """An observer of a relay."""
    match told:
        case EmptyFetch():
            _relay.log(TRACE, "No pending outbox events")
        case BatchFetched():
            _relay.info("Found %d pending outbox events to publish", len(told.messages))
        case Sending():
            for message in told.messages:
                text = "Publishing event: eventId=%s, eventType=%s, aggregateId=%s, attempt=%d, destination=%s"
                which = (message.event_id, message.event_type, message.aggregate_id, message.failures + 1)
                _relay.debug(text, *which, told.destination, extra=correlation.of(message.correlation_id))
        case EventDelivered():
            _relay.info("Successfully published event: %s", _which(told), extra=_correlated(told))
        case EventRetried():
            text = "Failed to publish event: %s, attempt=%d: %s"
            _relay.error(text, _which(told), told.attempt, _line(told.error), extra=_correlated(told))
            again = datetime.now(UTC) + timedelta(seconds=told.delay)
            text = "Will retry event: %s, attempt=%d, nextRetry=%s"
            _relay.warning(text, _which(told), told.attempt, timestamp(again), extra=_correlated(told))
        case EventDeadLettered():
            text = "Gave up on event: %s, attempt=%d: %s"
            _relay.error(text, _which(told), told.attempt, _line(told.error), extra=_correlated(told))
        case BatchSettled():
            text = "Outbox publish batch completed. Success: %d, Failures: %d"
            _relay.info(text, told.delivered, told.retried + told.dead)
        case BreakerChanged(state="closed", error=""):
            _relay.info("Destination %s: circuit breaker closed", told.destination)
        case BreakerChanged():
            _relay.warning("Destination %s: circuit breaker %s: %s", told.destination, told.state, _line(told.error))
        case StoreFailed():
            _relay.warning("Database is away, trying again in %.1f s: %s", told.delay, _line(told.error))
        case StoreRestored():
            _relay.info("Database is back after %.1f s", told.seconds)
        case TransportFailed():
            _relay.warning("RabbitMQ cannot be reached, trying again in %.1f s: %s", told.delay, _line(told.error))
        case TransportConnected():
            how = f"RabbitMQ is back after {told.seconds:.1f} s" if told.seconds else "Connected to RabbitMQ"
            _relay.info("%s: exchanges, queues and bindings are declared", how)
        case LeaseLost():
            _relay.warning("Lost the lease, starting over: %s", _line(told.reason))
        case RelayStarted():
            _relay.info("Relay started")
        case StopRequested():
            _relay.info("Relay asked to stop, draining")
        case RelayStopped():
            _relay.info("Relay stopped, %s", "drained" if told.drained else "with events in flight")


def log_consumer(told: ConsumerObservation) -> None:
    """An observer of a consumer."""
    match told:
        case EventProcessed():
            _consumer.info("%s handled event: eventId=%s", told.consumer, told.event_id)
        case DuplicateSkipped():
            _consumer.warning("%s had this event already: eventId=%s", told.consumer, told.event_id)
        case HandlingFailed():
            text = "%s failed, event comes again in %.0f s: eventId=%s, attempt=%d: %s"
            _consumer.error(text, told.consumer, told.delay, told.event_id, told.attempt, _line(told.error))
        case MessageDeadLettered():
            text = "%s gave up, event is with the dead letters: eventId=%s, attempt=%d: %s"
            _consumer.error(text, told.consumer, told.event_id, told.attempt, _line(told.error))
        case SourceFailed():
            _consumer.warning("%s cannot receive, trying again: %s", told.consumer, _line(told.error))
        case SourceRestored():
            _consumer.info("%s receives again after %.1f s", told.consumer, told.seconds)
        case ConsumerStarted():
            _consumer.info("%s started", told.consumer)
        case ConsumerStopped():
            _consumer.info("%s stopped, %s", told.consumer, "drained" if told.drained else "with events in hand")


def _which(told: EventDelivered | EventRetried | EventDeadLettered) -> str:
    return f"eventId={told.message.event_id}, aggregateId={told.message.aggregate_id}"


def _correlated(told: EventDelivered | EventRetried | EventDeadLettered) -> dict[str, str]:
    return correlation.of(told.message.correlation_id)


def _line(text: str) -> str:
    return " ".join(text.split())
