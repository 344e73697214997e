"""Log lines for the consumer's observations, by the rules of `logs.py`."""

from __future__ import annotations

import logging
from logging import ERROR, INFO, WARNING
from typing import assert_never

from pillarbox.inbox.observations import (
    AckFailed,
    ConsumerObservation,
    ConsumerStarted,
    ConsumerStopped,
    ConsumerStopRequested,
    DuplicateSkipped,
    EventProcessed,
    HandlingFailed,
    MessageDeadLettered,
    SourceFailed,
    SourceRestored,
    StatisticsFailed,
)
from pillarbox.telemetry.logs import log

CONSUMER = logging.getLogger("pillarbox.consumer")
EVENTS = logging.getLogger("pillarbox.consumer.events")

_EVENT = "consumer=%(consumer)s event_id=%(event_id)s event_type=%(event_type)s"


class ConsumerLog:
    """An observer that logs."""

    def __call__(self, observation: ConsumerObservation) -> None:
        """Log the observation if its logger is enabled for its level."""
        match observation:
            case EventProcessed(attempt=attempt, seconds=seconds):
                text = f"processed event: {_EVENT} attempt=%(attempt)d seconds=%(seconds).3f"
                log(EVENTS, INFO, text, **_event(observation), attempt=attempt, seconds=seconds)
            case DuplicateSkipped():
                log(EVENTS, WARNING, f"event already processed, skipping: {_EVENT}", **_event(observation))
            case HandlingFailed(attempt=attempt, error=error, delay=delay, counted=counted):
                text = f"event failed, will retry: {_EVENT} attempt=%(attempt)d delay=%(delay).1f error=%(error)s"
                log(
                    EVENTS,
                    ERROR,
                    text,
                    **_event(observation),
                    attempt=attempt,
                    delay=delay,
                    counted=counted,
                    error=error,
                )
            case MessageDeadLettered(attempt=attempt, error=error):
                text = f"dead-lettered event: {_EVENT} attempt=%(attempt)d error=%(error)s"
                log(EVENTS, ERROR, text, **_event(observation), attempt=attempt, error=error)
            case AckFailed(error=error):
                text = f"acknowledgement failed, the broker redelivers the event: {_EVENT} error=%(error)s"
                log(EVENTS, WARNING, text, **_event(observation), error=error)
            case SourceFailed(consumer=consumer, error=error, delay=delay):
                text = "source failed, retrying in %(delay).1f s: consumer=%(consumer)s error=%(error)s"
                log(CONSUMER, WARNING, text, consumer=consumer, error=error, delay=delay)
            case SourceRestored(consumer=consumer, seconds=seconds):
                text = "source reconnected after %(seconds).1f s: consumer=%(consumer)s"
                log(CONSUMER, INFO, text, consumer=consumer, seconds=seconds)
            case StatisticsFailed(consumer=consumer, error=error):
                text = "writing consumer statistics failed, will retry: consumer=%(consumer)s error=%(error)s"
                log(CONSUMER, WARNING, text, consumer=consumer, error=error)
            case ConsumerStarted(consumer=consumer):
                log(CONSUMER, INFO, "consumer started: consumer=%(consumer)s", consumer=consumer)
            case ConsumerStopRequested(consumer=consumer):
                log(CONSUMER, INFO, "stop requested, draining: consumer=%(consumer)s", consumer=consumer)
            case ConsumerStopped(consumer=consumer, drained=drained):
                level, how = (
                    (INFO, "drained and stopped")
                    if drained
                    else (WARNING, "stopped with events in flight, which the broker redelivers")
                )
                log(CONSUMER, level, f"{how}: consumer=%(consumer)s", consumer=consumer, drained=drained)
            case _:
                assert_never(observation)


def _event(
    observation: EventProcessed | DuplicateSkipped | HandlingFailed | MessageDeadLettered | AckFailed,
) -> dict[str, object]:
    return {
        "consumer": observation.consumer,
        "event_id": observation.event_id,
        "event_type": observation.event_type,
    }
