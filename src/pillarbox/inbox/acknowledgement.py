"""Acknowledges messages: a pure function decides between ack, retry and reject, then the source is told.

The consumer acks a message only after its transaction is committed.
"""

from __future__ import annotations

from dataclasses import dataclass

from pillarbox.core.clock import Clock, RandomSource
from pillarbox.core.errors import ConfigurationError, PermanentError, PillarboxError, UnavailableError, primary_text
from pillarbox.core.outcome import sanitize_error
from pillarbox.core.retry import RetryPolicy
from pillarbox.core.source import Delivery, Incoming
from pillarbox.inbox.consumed_event import ConsumedEvent
from pillarbox.inbox.dispatch import NoTransactionError
from pillarbox.inbox.observations import (
    AckFailed,
    ConsumerObserver,
    DuplicateSkipped,
    EventProcessed,
    HandlingFailed,
    MessageDeadLettered,
)
from pillarbox.retry_policies import ExponentialBackoff

LONGEST_REASON = 1000
"""Characters of an exception's first line that are kept with a message."""

DEFERRAL = ExponentialBackoff(base="1s", multiplier=5, max_delay="30s", jitter="none", max_attempts="unlimited")
"""The delays of a message that fails because something else is unavailable: without limit, at most 30 s each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AckMessage:
    """The event is processed."""

    duplicate: bool
    """It was processed by an earlier delivery."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryMessage:
    """Handling failed and was rolled back: have the message delivered again after `delay` seconds."""

    delay: float
    error: str
    counted: bool
    """Whether it counts as an attempt, or as a deferral."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectMessage:
    """Dead-letter the message."""

    error: str


Acknowledgement = AckMessage | RetryMessage | RejectMessage


def decide(
    error: BaseException, incoming: Incoming, policy: RetryPolicy, rng: RandomSource
) -> RetryMessage | RejectMessage:
    """Decide between a retry and a dead letter for a message whose handling raised `error`."""
    reason = reason_of(error)
    if isinstance(error, PermanentError):
        return RejectMessage(error=reason)
    if isinstance(error, (NoTransactionError, UnavailableError)):
        delay = DEFERRAL.delay_after(incoming.deferrals + 1, rng) or 0.0
        return RetryMessage(delay=delay, error=reason, counted=False)
    try:
        retry_delay = policy.delay_after(incoming.attempts + 1, rng)
    except Exception as broken:
        return RejectMessage(error=f"{reason}; the retry policy raised {reason_of(broken)}")
    if retry_delay is None:
        return RejectMessage(error=reason)
    return RetryMessage(delay=retry_delay, error=reason, counted=True)


def reason_of(error: BaseException) -> str:
    """The first line of an exception's text, with the name of its class unless it is an error of Pillarbox."""
    try:
        text = primary_text(error).strip()
    except Exception:  # its `__str__` may raise
        text = ""
    first = sanitize_error(text.splitlines()[0][:LONGEST_REASON]) if text else ""
    if isinstance(error, (PillarboxError, NoTransactionError)) and first:
        return first
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


class Acknowledger:
    """Acknowledges the messages of one consumer and announces the result.

    A source that raises an unexpected exception affects one message only.
    """

    def __init__(self, consumer: str, *, announce: ConsumerObserver, clock: Clock) -> None:
        self._consumer = consumer
        self._announce = announce
        self._clock = clock

    async def acknowledge(
        self, delivery: Delivery, decision: Acknowledgement, event: ConsumedEvent | None, *, began: float
    ) -> None:
        """Ack, retry or reject. Raises ConfigurationError if a queue or an exchange differs from the settings."""
        about = self._about(event or delivery.incoming)
        try:
            await self._acknowledge(delivery, decision, about, began)
        except ConfigurationError:
            raise
        except Exception as lost:
            self._announce(AckFailed(**about, error=reason_of(lost)))

    async def _acknowledge(
        self, delivery: Delivery, decision: Acknowledgement, about: dict[str, str], began: float
    ) -> None:
        attempt = delivery.incoming.attempts + 1
        match decision:
            case AckMessage(duplicate=True):
                await delivery.ack()
                self._announce(DuplicateSkipped(**about))
            case AckMessage():
                await delivery.ack()
                took = self._clock.monotonic() - began
                self._announce(EventProcessed(**about, attempt=attempt, seconds=took))
            case RetryMessage(delay=delay, error=error, counted=counted):
                self._announce(HandlingFailed(**about, attempt=attempt, error=error, delay=delay, counted=counted))
                try:
                    await delivery.retry(delay=delay, reason=error, counted=counted)
                except (ConfigurationError, UnavailableError):
                    raise
                except Exception as broken:
                    rejected = RejectMessage(error=f"{error}; the retry could not be scheduled: {reason_of(broken)}")
                    await self._acknowledge(delivery, rejected, about, began)
            case RejectMessage(error=error):
                await delivery.reject(error)
                self._announce(MessageDeadLettered(**about, attempt=attempt, error=error))

    def _about(self, event: ConsumedEvent | Incoming) -> dict[str, str]:
        return {
            "consumer": self._consumer,
            "event_id": sanitize_error(event.event_id or ""),
            "event_type": sanitize_error(event.event_type or ""),
        }
