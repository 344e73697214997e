"""Answering a message once it is decided what becomes of it: ack, retry or reject, each told to the observers."""

from __future__ import annotations

from pillarbox.core.clock import Clock
from pillarbox.core.errors import ConfigurationError, UnavailableError
from pillarbox.core.outcome import legible
from pillarbox.core.source import Delivery, Incoming
from pillarbox.inbox.consumed import ConsumedEvent
from pillarbox.inbox.decisions import Again, Ended, GivenUp, Outcome, told
from pillarbox.inbox.observations import (
    AckFailed,
    ConsumerObserver,
    DuplicateSkipped,
    EventProcessed,
    HandlingFailed,
    MessageDeadLettered,
)


class Answers:
    """Gives the answers of one consumer. A source that raises what it should not costs one message, not the others."""

    def __init__(self, consumer: str, *, tell: ConsumerObserver, clock: Clock) -> None:
        self._consumer = consumer
        self._tell = tell
        self._clock = clock

    async def give(self, delivery: Delivery, outcome: Outcome, event: ConsumedEvent | None, *, began: float) -> None:
        """Raises ConfigurationError if what exists on the broker is not what was configured."""
        about = self._about(event or delivery.incoming)
        try:
            await self._give(delivery, outcome, about, began)
        except ConfigurationError:
            raise
        except Exception as lost:
            self._tell(AckFailed(**about, error=told(lost)))

    async def _give(self, delivery: Delivery, outcome: Outcome, about: dict[str, str], began: float) -> None:
        attempt = delivery.incoming.attempts + 1
        match outcome:
            case Ended(first=first):
                await delivery.ack()
                took = self._clock.monotonic() - began
                self._tell(
                    EventProcessed(**about, attempt=attempt, seconds=took) if first else DuplicateSkipped(**about)
                )
            case Again(after=after, error=error, charge=charge):
                self._tell(HandlingFailed(**about, attempt=attempt, error=error, delay=after, counted=charge))
                try:
                    await delivery.retry(after=after, reason=error, charge=charge)
                except (ConfigurationError, UnavailableError):
                    raise
                except Exception as broken:
                    given_up = GivenUp(error=f"{error}; and it could not be put aside to wait: {told(broken)}")
                    await self._give(delivery, given_up, about, began)
            case GivenUp(error=error):
                await delivery.reject(error)
                self._tell(MessageDeadLettered(**about, attempt=attempt, error=error))

    def _about(self, told: ConsumedEvent | Incoming) -> dict[str, str]:
        return {
            "consumer": self._consumer,
            "event_id": legible(told.event_id or ""),
            "event_type": legible(told.event_type or ""),
        }
