"""Log lines for the relay's observations, written with the standard library's logging.

Invariants: a disabled line costs one check of its level; payloads and headers are never logged; whatever an event or
an error contains, a line stays one printable line. Each value in the text is also an attribute of the log record, for
handlers that write JSON.

Lines about single events have their own logger, so that a busy relay can disable them and keep the other lines.
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
from pillarbox.core.text import noun
from pillarbox.telemetry.log_lines import TRACE, name_trace_level

RELAY = logging.getLogger("pillarbox.relay")
EVENTS = logging.getLogger("pillarbox.relay.events")

_EVENT = "event_id=%(event_id)s aggregate_id=%(aggregate_id)s destination=%(destination)s attempt=%(attempt)d"

_LANE = "%(count)d lane: relay=%(relay)s lanes=%(lanes)s"
_LANES = "%(count)d lanes: relay=%(relay)s lanes=%(lanes)s"


class RelayLog(BatchObserver):
    """An observer that logs. `clock` turns delays into timestamps."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        name_trace_level()

    def __call__(self, observation: Observation) -> None:
        """Log the observation if its logger is enabled for its level."""
        match observation:  # the most frequent cases first
            case EventDelivered():
                _delivered(observation)
            case Sending():
                _sending(observation)
            case EventSkipped():
                _skipped(observation)
            case EventRetried():
                self._retried(observation)
            case EventDeadLettered():
                _dead_lettered(observation)
            case SendOverdue():
                _overdue(observation)
            case EmptyFetch(relay=relay):
                log(RELAY, TRACE, "empty fetch: relay=%(relay)s", relay=relay)
            case BatchFetched(relay=relay, messages=messages, seconds=seconds):
                text = "fetched %(fetched)d pending: relay=%(relay)s seconds=%(seconds).3f"
                log(RELAY, INFO, text, relay=relay, fetched=len(messages), seconds=seconds)
            case BatchSettled():
                _settled(observation)
            case BreakerChanged():
                self._breaker(observation)
            case DestinationOverridden():
                _overridden(observation)
            case StoreFailed(relay=relay, error=error, delay=delay):
                text = "store failed, retrying in %(delay).2f s: relay=%(relay)s error=%(error)s"
                log(RELAY, WARNING, text, relay=relay, error=error, delay=delay)
            case StoreRestored(relay=relay, seconds=seconds):
                text = "store reachable again after %(seconds).1f s: relay=%(relay)s"
                log(RELAY, INFO, text, relay=relay, seconds=seconds)
            case TransportFailed() | TransportConnected():
                _transport(observation)
            case RelayStarted(relay=relay, name=name):
                log(RELAY, INFO, "relay started: relay=%(relay)s name=%(relay_name)s", relay=relay, relay_name=name)
            case RelayDisabled(relay=relay):
                log(RELAY, INFO, "relay disabled by its settings: relay=%(relay)s", relay=relay)
            case StopRequested(relay=relay):
                log(RELAY, INFO, "stop requested, draining: relay=%(relay)s", relay=relay)
            case RelayStopped():
                _stopped(observation)
            case LanesAcquired():
                _acquired(observation)
            case LanesReleased(relay=relay, lanes=lanes):
                log(RELAY, INFO, f"released {_lanes(lanes)}", relay=relay, count=len(lanes), lanes=list(lanes))
            case LanesLost(relay=relay, lanes=lanes):
                text = f"another relay owns {_lanes(lanes)}"
                log(RELAY, WARNING, text, relay=relay, count=len(lanes), lanes=list(lanes))
            case LeaseLost(relay=relay, reason=reason):
                text = "lease lost, dropped everything in flight: relay=%(relay)s reason=%(reason)s"
                log(RELAY, WARNING, text, relay=relay, reason=reason)
            case RelayStateChanged(relay=relay, lanes=owned, in_flight=in_flight):
                text = f"owns %(owned)d {noun(owned, 'lane')}, %(in_flight)d in flight: relay=%(relay)s"
                log(RELAY, TRACE, text, relay=relay, owned=owned, in_flight=in_flight)
            case RelayStalled() | RelayStallEnded():
                _stall(observation)
            case Pruned(relay=relay, count=count):
                log(
                    RELAY,
                    INFO,
                    f"retention deleted %(count)d {noun(count, 'row')}: relay=%(relay)s",
                    relay=relay,
                    count=count,
                )
            case OperatorRequestsExecuted(relay=relay, count=count):
                text = f"executed %(count)d operator {noun(count, 'request')}: relay=%(relay)s"
                log(RELAY, INFO, text, relay=relay, count=count)
            case _:
                assert_never(observation)

    def delivered(self, batch: BatchDelivered) -> None:
        """Log each delivery of the batch if the logger is enabled."""
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
            log(EVENTS, DEBUG, f"{will_retry} error=%(error)s", **fields)
        elif retried.counted:
            log(EVENTS, ERROR, f"failed to send event: {_EVENT} error=%(error)s", **fields)
            log(EVENTS, WARNING, will_retry, **fields)
        else:
            # The destination is at fault, and thousands of events may fail alike: one warning each, no error.
            log(EVENTS, WARNING, f"{will_retry} error=%(error)s", **fields)

    def _breaker(self, changed: BreakerChanged) -> None:
        # A closed breaker with a next probe fails while an operator forces it closed.
        level = INFO if changed.state == "closed" and not changed.next_probe else WARNING
        if not RELAY.isEnabledFor(level):
            return
        text = "breaker %(state)s: destination=%(destination)s relay=%(relay)s"
        fields: dict[str, object] = {
            "relay": changed.relay,
            "destination": changed.destination,
            "state": changed.state,
        }
        if level == WARNING:
            # The relay announces it when the breaker opens and after each failed probe: one line per probe.
            text += " next_probe_at=%(next_probe_at)s error=%(error)s"
            fields |= {"next_probe_at": self._after(changed.next_probe), "error": changed.error}
        log(RELAY, level, text, **fields)

    def _after(self, delay: float) -> str | None:
        try:
            return timestamp(self._clock.now() + timedelta(seconds=delay))
        except (OverflowError, ValueError):  # the date is out of range, or the delay is not a number
            return None


def _delivered(delivered: EventDelivered) -> None:
    if EVENTS.isEnabledFor(INFO):
        text = f"delivered event: {_EVENT} seconds=%(seconds).3f"
        log(EVENTS, INFO, text, **_event(delivered, delivered.message), seconds=delivered.seconds)


def _overridden(overridden: DestinationOverridden) -> None:
    if not RELAY.isEnabledFor(INFO):
        return
    limit = None if overridden.rate_limit is None else f"{overridden.rate_limit:g}/s"
    parts = {
        "paused": overridden.paused,
        f"breaker forced {overridden.breaker}": overridden.breaker,
        f"limited to {limit}": limit,
    }
    log(
        RELAY,
        INFO,
        "destination override changed: %(override)s: destination=%(destination)s relay=%(relay)s",
        relay=overridden.relay,
        destination=overridden.destination,
        override=", ".join(part for part, is_set in parts.items() if is_set) or "none",
    )


def _skipped(skipped: EventSkipped) -> None:
    if EVENTS.isEnabledFor(INFO):
        text = f"skipped event, already sent according to the ledger: {_EVENT}"
        log(EVENTS, INFO, text, **_event(skipped, skipped.message))


def _sending(sending: Sending) -> None:
    if EVENTS.isEnabledFor(DEBUG):
        text = f"about to send event: {_EVENT} event_type=%(event_type)s bytes=%(bytes)d"
        for message in sending.messages:
            log(EVENTS, DEBUG, text, **_event(sending, message), bytes=len(message.payload))


def _overdue(overdue: SendOverdue) -> None:
    text = f"handler timed out and still runs, its key waits: {_EVENT} seconds=%(seconds).3f"
    log(EVENTS, WARNING, text, **_event(overdue, overdue.message), seconds=overdue.seconds)


def _dead_lettered(dead: EventDeadLettered) -> None:
    if EVENTS.isEnabledFor(ERROR):
        what = "dead-lettered event, its key is blocked" if dead.blocks else "dead-lettered event"
        fields = _event(dead, dead.message) | {"attempt": dead.attempt, "error": dead.error, "blocks": dead.blocks}
        log(EVENTS, ERROR, f"{what}: {_EVENT} error=%(error)s", **fields)


def _transport(observation: TransportFailed | TransportConnected) -> None:
    fields = {"relay": observation.relay, "transport": observation.transport}
    if isinstance(observation, TransportFailed):
        text = "transport unavailable, next attempt in %(delay).2f s: transport=%(transport)s relay=%(relay)s"
        log(RELAY, WARNING, f"{text} error=%(error)s", **fields, delay=observation.delay, error=observation.error)
    elif observation.seconds:
        text = "transport reconnected after %(seconds).1f s: transport=%(transport)s relay=%(relay)s"
        log(RELAY, INFO, text, **fields, seconds=observation.seconds)
    else:
        log(RELAY, INFO, "transport connected: transport=%(transport)s relay=%(relay)s", **fields)


def _settled(settled: BatchSettled) -> None:
    log(
        RELAY,
        INFO,
        "batch completed: %(delivered)d delivered, %(failed)d failed (%(retried)d to retry, %(dead)d dead-lettered), "
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
        log(RELAY, INFO, "drained and stopped: relay=%(relay)s", relay=stopped.relay, drained=True)
    else:
        text = "stopped with messages in flight, which will be sent again: relay=%(relay)s"
        log(RELAY, WARNING, text, relay=stopped.relay, drained=False)


def _stall(observation: RelayStalled | RelayStallEnded) -> None:
    fields = {"relay": observation.relay, "stage": observation.stage, "seconds": observation.seconds}
    if isinstance(observation, RelayStalled):
        text = "stalled, no progress for %(seconds).0f s: relay=%(relay)s stage=%(stage)s reason=%(reason)s"
        log(RELAY, ERROR, text, **fields, reason=observation.reason)
    else:
        log(RELAY, INFO, "no longer stalled after %(seconds).0f s: relay=%(relay)s stage=%(stage)s", **fields)


def _lanes(lanes: Sequence[int]) -> str:
    return noun(len(lanes), _LANE, _LANES)


def _acquired(acquired: LanesAcquired) -> None:
    lanes, crashed = list(acquired.lanes), list(acquired.crashed)
    fields = {"relay": acquired.relay, "count": len(lanes), "lanes": lanes}
    if crashed:
        text = f"acquired %(count)d {noun(len(lanes), 'lane')} ({len(crashed)} from a crashed relay): relay=%(relay)s"
        log(RELAY, WARNING, f"{text} lanes=%(lanes)s crashed=%(crashed)s", **fields, crashed=crashed)
    else:
        log(RELAY, INFO, f"acquired {_lanes(lanes)}", **fields)


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
        "attempt": message.attempts + message.deferrals + 1,
    }


def log(logger: logging.Logger, level: int, text: str, **fields: object) -> None:
    """Log one line; its values are also attributes of the log record."""
    if logger.isEnabledFor(level):
        clean = {name: _printable(value) if isinstance(value, str) else value for name, value in fields.items()}
        logger.log(level, text, clean, extra=clean)


def _printable(text: str) -> str:
    """Escape characters that end a line, control a terminal or cannot be encoded."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
