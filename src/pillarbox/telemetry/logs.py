"""Observations as lines of the standard library's logging.

What must stay true: a line that nobody wants costs a look at its level and nothing else; no payload and no header is
ever logged; whatever an event or an error contains, a line stays one printable line. Each value in the text is also an
attribute of the record, for handlers that write JSON.

Lines about single events have a logger of their own, so that a busy relay can silence them and keep the rest.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import timedelta
from logging import DEBUG, ERROR, INFO, WARNING
from typing import assert_never

from pillarbox.core.clock import Clock, SystemClock, timestamp
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
from pillarbox.core.text import noun

TRACE = 5
"""Below DEBUG: what happens all the time when nothing happens."""

RELAY = logging.getLogger("pillarbox.relay")
EVENTS = logging.getLogger("pillarbox.relay.events")

_EVENT = "event_id=%(event_id)s aggregate_id=%(aggregate_id)s destination=%(destination)s attempt=%(attempt)d"

_LANE = "%(count)d lane: relay=%(relay)s lanes=%(lanes)s"
_LANES = "%(count)d lanes: relay=%(relay)s lanes=%(lanes)s"


class RelayLog(BatchObserver):
    """An observer that logs. `clock` turns delays into the times that people read."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        if logging.getLevelName(TRACE) == f"Level {TRACE}":
            logging.addLevelName(TRACE, "TRACE")

    def __call__(self, observation: Observation) -> None:
        """Log it, if anybody wants to know."""
        match observation:  # what comes most often is asked for first
            case EventDelivered():
                _delivered(observation)
            case Sending():
                _sending(observation)
            case EventSkipped():
                _skipped(observation)
            case EventRetried():
                self._retried(observation)
            case EventDeadLettered():
                _died(observation)
            case SendOverdue():
                _overdue(observation)
            case EmptyFetch(relay=relay):
                say(RELAY, TRACE, "found nothing pending: relay=%(relay)s", relay=relay)
            case BatchFetched(relay=relay, messages=messages, seconds=seconds):
                text = "found %(pending)d pending: relay=%(relay)s seconds=%(seconds).3f"
                say(RELAY, INFO, text, relay=relay, pending=len(messages), seconds=seconds)
            case BatchSettled():
                _settled(observation)
            case BreakerChanged():
                self._breaker(observation)
            case DestinationOverridden():
                _steered(observation)
            case StoreFailed(relay=relay, error=error, delay=delay):
                text = "store failed, next try in %(delay).2f s: relay=%(relay)s error=%(error)s"
                say(RELAY, WARNING, text, relay=relay, error=error, delay=delay)
            case StoreRestored(relay=relay, seconds=seconds):
                text = "store answers again after %(seconds).1f s: relay=%(relay)s"
                say(RELAY, INFO, text, relay=relay, seconds=seconds)
            case TransportFailed() | TransportConnected():
                _transport(observation)
            case RelayStarted(relay=relay, name=name):
                say(RELAY, INFO, "relay started: relay=%(relay)s name=%(relay_name)s", relay=relay, relay_name=name)
            case RelayDisabled(relay=relay):
                say(RELAY, INFO, "relay switched off by its settings: relay=%(relay)s", relay=relay)
            case StopRequested(relay=relay):
                say(RELAY, INFO, "stop requested, draining: relay=%(relay)s", relay=relay)
            case RelayStopped():
                _stopped(observation)
            case LanesAcquired():
                _taken(observation)
            case LanesReleased(relay=relay, lanes=lanes):
                say(RELAY, INFO, f"gave back {_told(lanes)}", relay=relay, count=len(lanes), lanes=list(lanes))
            case LanesLost(relay=relay, lanes=lanes):
                text = f"somebody else has taken {_told(lanes)}"
                say(RELAY, WARNING, text, relay=relay, count=len(lanes), lanes=list(lanes))
            case LeaseLost(relay=relay, reason=reason):
                text = "lease lost, dropped everything in hand: relay=%(relay)s reason=%(reason)s"
                say(RELAY, WARNING, text, relay=relay, reason=reason)
            case RelayStateChanged(relay=relay, lanes=held, in_flight=in_flight):
                text = (
                    f"holds %(held)d {noun(held, 'lane')}, %(in_flight)d {noun(in_flight, 'message')}: relay=%(relay)s"
                )
                say(RELAY, TRACE, text, relay=relay, held=held, in_flight=in_flight)
            case RelayStalled() | RelayStallEnded():
                _stall(observation)
            case Pruned(relay=relay, count=count):
                say(RELAY, INFO, "retention dropped %(count)d: relay=%(relay)s", relay=relay, count=count)
            case OperatorRequestsApplied(relay=relay, count=count):
                text = f"carried out %(count)d {noun(count, 'request')}: relay=%(relay)s"
                say(RELAY, INFO, text, relay=relay, count=count)
            case _:
                assert_never(observation)

    def delivered(self, batch: BatchDelivered) -> None:
        """Log each of them, if anybody wants to know."""
        if EVENTS.isEnabledFor(INFO):
            for delivered in batch.events():
                _delivered(delivered)

    def _retried(self, retried: EventRetried) -> None:
        if not EVENTS.isEnabledFor(ERROR if retried.counted else WARNING):
            return
        fields = _event(retried, retried.message) | {
            "attempt": retried.attempt,
            "error": retried.error,
            "next_retry_at": self._after(retried.delay),
        }
        will_retry = f"will retry event: {_EVENT} next_retry_at=%(next_retry_at)s"
        if retried.probe:
            say(EVENTS, DEBUG, f"{will_retry} error=%(error)s", **fields)
        elif retried.counted:
            say(EVENTS, ERROR, f"failed to send event: {_EVENT} error=%(error)s", **fields)
            say(EVENTS, WARNING, will_retry, **fields)
        else:
            # The event is not at fault, and there may be thousands like it: one line, and not an error.
            say(EVENTS, WARNING, f"{will_retry} error=%(error)s", **fields)

    def _breaker(self, changed: BreakerChanged) -> None:
        # One that is closed and has a next try fails: a person holds it closed.
        level = INFO if changed.state == "closed" and not changed.next_try else WARNING
        if not RELAY.isEnabledFor(level):
            return
        text = "breaker %(state)s: destination=%(destination)s relay=%(relay)s"
        fields: dict[str, object] = {
            "relay": changed.relay,
            "destination": changed.destination,
            "state": changed.state,
        }
        if level == WARNING:
            # Announced when it opens and after each probe that failed: in an outage, the one line per probe.
            text += " next_try_at=%(next_try_at)s error=%(error)s"
            fields |= {"next_try_at": self._after(changed.next_try), "error": changed.error}
        say(RELAY, level, text, **fields)

    def _after(self, delay: float) -> str | None:
        try:
            return timestamp(self._clock.now() + timedelta(seconds=delay))
        except (OverflowError, ValueError):  # beyond the calendar, or no number
            return None


def _delivered(delivered: EventDelivered) -> None:
    if EVENTS.isEnabledFor(INFO):
        text = f"delivered event: {_EVENT} seconds=%(seconds).3f"
        say(EVENTS, INFO, text, **_event(delivered, delivered.message), seconds=delivered.seconds)


def _steered(steered: DestinationOverridden) -> None:
    if not RELAY.isEnabledFor(INFO):
        return
    limit = None if steered.rate_limit is None else f"{steered.rate_limit:g}/s"
    wishes = {"paused": steered.paused, f"breaker held {steered.breaker}": steered.breaker, f"at most {limit}": limit}
    say(
        RELAY,
        INFO,
        "people want of a destination: %(wanted)s: destination=%(destination)s relay=%(relay)s",
        relay=steered.relay,
        destination=steered.destination,
        wanted=", ".join(wish for wish, wanted in wishes.items() if wanted) or "nothing more",
    )


def _skipped(skipped: EventSkipped) -> None:
    if EVENTS.isEnabledFor(INFO):
        text = f"skipped event, the ledger knows that it was sent: {_EVENT}"
        say(EVENTS, INFO, text, **_event(skipped, skipped.message))


def _sending(sending: Sending) -> None:
    if EVENTS.isEnabledFor(DEBUG):
        text = f"about to send event: {_EVENT} event_type=%(event_type)s bytes=%(bytes)d"
        for message in sending.messages:
            say(EVENTS, DEBUG, text, **_event(sending, message), bytes=len(message.payload))


def _overdue(overdue: SendOverdue) -> None:
    text = f"handler has not returned in time, its key waits: {_EVENT} seconds=%(seconds).3f"
    say(EVENTS, WARNING, text, **_event(overdue, overdue.message), seconds=overdue.seconds)


def _died(died: EventDeadLettered) -> None:
    if EVENTS.isEnabledFor(ERROR):
        what = "gave up on event, its key waits for a person" if died.blocks else "gave up on event"
        fields = _event(died, died.message) | {"attempt": died.attempt, "error": died.error, "blocks": died.blocks}
        say(EVENTS, ERROR, f"{what}: {_EVENT} error=%(error)s", **fields)


def _transport(told: TransportFailed | TransportConnected) -> None:
    fields = {"relay": told.relay, "transport": told.transport}
    if isinstance(told, TransportFailed):
        text = "transport unavailable, next attempt in %(delay).2f s: transport=%(transport)s relay=%(relay)s"
        say(RELAY, WARNING, f"{text} error=%(error)s", **fields, delay=told.delay, error=told.error)
    elif told.seconds:
        text = "transport reconnected after %(seconds).1f s: transport=%(transport)s relay=%(relay)s"
        say(RELAY, INFO, text, **fields, seconds=told.seconds)
    else:
        say(RELAY, INFO, "transport connected: transport=%(transport)s relay=%(relay)s", **fields)


def _settled(settled: BatchSettled) -> None:
    say(
        RELAY,
        INFO,
        "batch completed: %(delivered)d delivered, %(failed)d failed (%(retried)d to retry, %(dead)d given up), "
        "%(duplicates)d duplicates: relay=%(relay)s seconds=%(seconds).3f",
        relay=settled.relay,
        delivered=settled.delivered,
        failed=settled.retried + settled.dead,
        retried=settled.retried,
        dead=settled.dead,
        duplicates=settled.duplicates,
        seconds=settled.seconds,
    )


def _stopped(stopped: RelayStopped) -> None:
    if stopped.drained:
        say(RELAY, INFO, "drained and stopped: relay=%(relay)s", relay=stopped.relay, drained=True)
    else:
        text = "stopped with messages in flight, which will be sent again: relay=%(relay)s"
        say(RELAY, WARNING, text, relay=stopped.relay, drained=False)


def _stall(told: RelayStalled | RelayStallEnded) -> None:
    fields = {"relay": told.relay, "stage": told.stage, "seconds": told.seconds}
    if isinstance(told, RelayStalled):
        text = "stalled, no progress for %(seconds).0f s: relay=%(relay)s stage=%(stage)s reason=%(reason)s"
        say(RELAY, ERROR, text, **fields, reason=told.reason)
    else:
        say(RELAY, INFO, "no longer stalled after %(seconds).0f s: relay=%(relay)s stage=%(stage)s", **fields)


def _told(lanes: Sequence[int]) -> str:
    return noun(len(lanes), _LANE, _LANES)


def _taken(taken: LanesAcquired) -> None:
    lanes, crashed = list(taken.lanes), list(taken.crashed)
    if crashed:
        text = f"took {_told(lanes)}; from owners that did not leave: %(crashed)s"
        say(RELAY, WARNING, text, relay=taken.relay, count=len(lanes), lanes=lanes, crashed=crashed)
    else:
        say(RELAY, INFO, f"took {_told(lanes)}", relay=taken.relay, count=len(lanes), lanes=lanes)


def _event(
    observation: EventDelivered | EventSkipped | Sending | SendOverdue | EventRetried | EventDeadLettered,
    message: Message,
) -> dict[str, object]:
    return {
        "relay": observation.relay,
        "event_id": message.event_id,
        "event_type": message.event_type,
        "aggregate_id": message.aggregate_id,
        "destination": observation.destination,
        "attempt": message.attempts + message.tries + 1,
    }


def say(logger: logging.Logger, level: int, text: str, **fields: object) -> None:
    """One line, its values also as attributes of the record."""
    if logger.isEnabledFor(level):
        clean = {name: _printable(value) if isinstance(value, str) else value for name, value in fields.items()}
        logger.log(level, text, clean, extra=clean)


def _printable(text: str) -> str:
    """`text` without anything that could end a line, steer a terminal or not be encoded."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
