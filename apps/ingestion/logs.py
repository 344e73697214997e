"""Log configuration, and the log lines of relay and consumers in the format of the guide."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime, timedelta

from apps.runtime import correlation
from apps.runtime.timestamps import timestamp
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
"""Below DEBUG: lines that an idle relay repeats."""
logging.addLevelName(TRACE, "TRACE")

FORMAT = "%(asctime)s %(levelname)s %(name)s [%(correlation_id)s] %(message)s"

_relay = logging.getLogger("apps.ingestion.relay")
_consumer = logging.getLogger("apps.ingestion.consumer")


def configure(level: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(correlation.Stamp())
    handler.setFormatter(LineFormatter(FORMAT))
    logging.basicConfig(level=level, handlers=[handler])
    # The lines below report a lost connection already.
    logging.getLogger("pika").setLevel(logging.CRITICAL)
    logging.getLogger("alembic").setLevel(logging.WARNING)


def log_relay(seen: Observation) -> None:
    """An observer of a relay."""
    match seen:
        case EmptyFetch():
            _relay.log(TRACE, "No pending outbox events")
        case BatchFetched():
            _relay.info("Found %d pending outbox events to publish", len(seen.messages))
        case Sending():
            for message in seen.messages:
                text = "Publishing event: eventId=%s, eventType=%s, aggregateId=%s, attempt=%d, destination=%s"
                which = (message.event_id, message.event_type, message.aggregate_id, message.failures + 1)
                _relay.debug(text, *which, seen.destination, extra=correlation.of(message.correlation_id))
        case EventDelivered():
            _relay.info("Successfully published event: %s", _which(seen), extra=_correlated(seen))
        case EventRetried():
            text = "Failed to publish event: %s, attempt=%d: %s"
            _relay.error(text, _which(seen), seen.attempt, _line(seen.error), extra=_correlated(seen))
            again = datetime.now(UTC) + timedelta(seconds=seen.delay)
            text = "Will retry event: %s, attempt=%d, nextRetry=%s"
            _relay.warning(text, _which(seen), seen.attempt, timestamp(again), extra=_correlated(seen))
        case EventDeadLettered():
            text = "Dead-lettered event: %s, attempt=%d: %s"
            _relay.error(text, _which(seen), seen.attempt, _line(seen.error), extra=_correlated(seen))
        case BatchSettled():
            text = "Outbox publish batch completed. Success: %d, Failures: %d"
            _relay.info(text, seen.delivered, seen.retried + seen.dead)
        case BreakerChanged(state="closed", error=""):
            _relay.info("Destination %s: circuit breaker closed", seen.destination)
        case BreakerChanged():
            _relay.warning("Destination %s: circuit breaker %s: %s", seen.destination, seen.state, _line(seen.error))
        case StoreFailed():
            _relay.warning("Database is unavailable, retrying in %.1f s: %s", seen.delay, _line(seen.error))
        case StoreRestored():
            _relay.info("Database is available again after %.1f s", seen.seconds)
        case TransportFailed():
            _relay.warning("RabbitMQ is unavailable, retrying in %.1f s: %s", seen.delay, _line(seen.error))
        case TransportConnected():
            how = f"RabbitMQ is available again after {seen.seconds:.1f} s" if seen.seconds else "Connected to RabbitMQ"
            _relay.info("%s: exchanges, queues and bindings are declared", how)
        case LeaseLost():
            _relay.warning("Lost the lease, starting over: %s", _line(seen.reason))
        case RelayStarted():
            _relay.info("Relay started")
        case StopRequested():
            _relay.info("Relay stopping, draining")
        case RelayStopped():
            _relay.info("Relay stopped, %s", "drained" if seen.drained else "with events in flight")


def log_consumer(seen: ConsumerObservation) -> None:
    """An observer of a consumer."""
    match seen:
        case EventProcessed():
            _consumer.info("%s processed event: eventId=%s", seen.consumer, seen.event_id)
        case DuplicateSkipped():
            _consumer.warning("%s skipped a duplicate: eventId=%s", seen.consumer, seen.event_id)
        case HandlingFailed():
            text = "%s failed, retrying in %.0f s: eventId=%s, attempt=%d: %s"
            _consumer.error(text, seen.consumer, seen.delay, seen.event_id, seen.attempt, _line(seen.error))
        case MessageDeadLettered():
            text = "%s dead-lettered the event: eventId=%s, attempt=%d: %s"
            _consumer.error(text, seen.consumer, seen.event_id, seen.attempt, _line(seen.error))
        case SourceFailed():
            _consumer.warning("%s cannot receive, retrying: %s", seen.consumer, _line(seen.error))
        case SourceRestored():
            _consumer.info("%s receives again after %.1f s", seen.consumer, seen.seconds)
        case ConsumerStarted():
            _consumer.info("%s started", seen.consumer)
        case ConsumerStopped():
            _consumer.info("%s stopped, %s", seen.consumer, "drained" if seen.drained else "with events in flight")


def _which(seen: EventDelivered | EventRetried | EventDeadLettered) -> str:
    return f"eventId={seen.message.event_id}, aggregateId={seen.message.aggregate_id}"


def _correlated(seen: EventDelivered | EventRetried | EventDeadLettered) -> dict[str, str]:
    return correlation.of(seen.message.correlation_id)


def _line(text: str) -> str:
    return " ".join(text.split())
