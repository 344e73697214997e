"""The state of one destination as one relay sees it: circuit breaker, rate limit, override. Pure state.

    closed ──── unavailable, or this many different messages rejected in a row ────▶ open
    open ────── the wait is over ────▶ half-open: one message goes, and its result decides
    half-open ─ accepted ────▶ closed
              ─ unavailable, or rejected where rejections opened it ────▶ open, for longer
    open, half-open ─ its transport reconnected ────▶ closed, unless rejections opened it

Invariants: the breaker moves only when told the time. One probe is in flight at a time. The breaker stays open forever
only if an operator forces it, not when the result of a probe is lost. Late results, from before it opened, do not
lengthen the wait, unless the destination asked for a longer one (`UnavailableError.retry_after`): before that is over,
nothing closes it. A batch of which every message was nacked (a full queue) counts as unavailable; a nack among accepted
messages does not, nor do nacks of single messages (`NackedError.alone`). Forced closed by an operator, it lets
everything through, but after an outage it pauses for as long as it would wait for a probe, so that the relay does not
retry in a hot loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pillarbox.core.clock import RandomSource, system_rng
from pillarbox.core.errors import ConfigurationError
from pillarbox.core.outcome import MAX_DELAY
from pillarbox.core.retry import RetryPolicy
from pillarbox.core.store import ForcedBreakerState
from pillarbox.relay.routing import DestinationEndpoint, per_second
from pillarbox.retry_policies import ExponentialBackoff

BreakerState = Literal["closed", "open", "half-open"]

UNLIMITED = 1_000_000
PROBE_TIMEOUT = 60.0
"""Seconds after which the result of a probe is no longer expected and another may be sent."""

NEVER = 3600.0
"""Seconds: where no time is known at which something may be sent again."""
HEALTHY = ("closed", False, 0.0)
"""The report of a destination that is available."""

_LONG_AGO = float("-inf")
_PROBE = ExponentialBackoff(base="1s", max_delay="2s", jitter="full", max_attempts="unlimited")


class CircuitBreaker:
    """The breaker of one destination. `rejections`: how many different messages in a row; 0 = they never open it.

    Raises ConfigurationError for a probe policy that ends: an outage may last longer.
    """

    def __init__(self, *, probe: RetryPolicy = _PROBE, rejections: int = 20) -> None:
        if probe.delay_after(1_000_000, system_rng()) is None:
            raise ConfigurationError('the probes of a breaker must not end: give their policy max_attempts="unlimited"')
        if rejections < 0:
            raise ConfigurationError(f"a breaker opens after {rejections} rejections: 0 means never")
        self.error = ""
        """Why it is open; '' when closed."""
        self.paused = False
        self.forced: ForcedBreakerState | None = None
        self._probe = probe
        self._rejections = rejections
        self._rejected: set[str] = set()  # since something was accepted; never more than `rejections`
        self._openings = 0
        self._open_until: float | None = None
        self._probe_sent_at: float | None = None
        self._asked_until = _LONG_AGO
        self._forced_pauses = 0
        self._forced_pause_until = _LONG_AGO

    @property
    def fails(self) -> bool:
        """It would be open if no operator forced it closed."""
        return self.forced == "closed" and self._open_until is not None

    @property
    def is_clean(self) -> bool:
        """It is closed, without an override, and no message failed since one was accepted."""
        # Written out: the relay asks before every send, and after it.
        return not (
            self.paused
            or self._rejected
            or self._forced_pauses
            or self.forced is not None
            or self._open_until is not None
        )

    def state(self, now: float) -> BreakerState:
        """The state that operators see. A pause is separate, see `paused`."""
        if self.forced is not None:
            return self.forced
        if self._open_until is None:
            return "closed"
        return "open" if now < self._open_until else "half-open"

    def may_send(self, now: float) -> int:
        """How many messages may be sent now."""
        if self.paused:
            return 0
        match self.state(now):
            case "closed":
                return 0 if self._forced_pause(now) else UNLIMITED
            case "half-open":
                return 0 if self._probe_pause(now) else 1
            case "open":
                return 0

    def next_attempt(self, now: float) -> float:
        """Seconds until something may be sent; a hundred years where only an operator can change it."""
        if self.paused or self.forced == "open":
            return MAX_DELAY
        match self.state(now):
            case "closed":
                return self._forced_pause(now)
            case "half-open":
                return self._probe_pause(now)
            case "open":
                return max(0.0, (self._open_until or now) - now)

    def sent(self, count: int, now: float) -> bool:
        """This many messages were sent; returns whether they are the probe, as in half-open."""
        if not count or self._open_until is None or self.state(now) != "half-open":
            return False
        self._probe_sent_at = now
        return True

    def probe_ended(self) -> None:
        """The probe ended without a result: another one may be sent."""
        self._probe_sent_at = None

    def accepted(self, now: float) -> None:
        """The destination accepted a message: it is available, unless it has asked to wait."""
        self._rejected.clear()
        self._probe_sent_at = None
        if now >= self._asked_until:
            self._close()
            self._reset_forced_pause()

    def reachable(self, now: float) -> None:
        """Its transport was unreachable and has reconnected: do not wait for the next probe."""
        if not self._rejects_all() and now >= self._asked_until:
            self._close()
            self._reset_forced_pause()

    def unavailable(self, error: str, now: float, rng: RandomSource, *, retry_after: float = 0.0) -> None:
        """The destination is unavailable: wait, longer each time, and at least as long as it asked for."""
        if self.forced == "closed" and now >= self._forced_pause_until:
            self._forced_pauses += 1
            self._forced_pause_until = now + self._wait(self._forced_pauses, rng)
        self._fail(error, now, rng)
        if retry_after > 0 and self._open_until is not None:
            self._asked_until = max(self._asked_until, now + min(retry_after, MAX_DELAY))
            self._open_until = max(self._open_until, self._asked_until)
            if self.forced == "closed":
                self._forced_pause_until = max(self._forced_pause_until, self._asked_until)

    def rejected(self, event_id: str, now: float, rng: RandomSource) -> None:
        """The destination responded, and rejected this one message."""
        if self._probe_sent_at is not None and not self._rejects_all():
            self._close()
        if len(self._rejected) < self._rejections:
            self._rejected.add(event_id)
        if self._rejects_all():
            self._fail(f"rejected {self._rejections} different messages in a row, accepted none", now, rng)

    def force(self, state: ForcedBreakerState | None) -> None:
        """Override the state until None is given. Results are counted all the same."""
        if state not in (None, "closed", "open"):
            raise ConfigurationError(f"a breaker may be held closed or open, not {state!r}")
        if state != self.forced:
            self._reset_forced_pause()
        self.forced = state

    def pause(self) -> None:
        """Send nothing until `resume`, in whatever state."""
        self.paused = True

    def resume(self) -> None:
        """Continue in the state it is in."""
        self.paused = False

    def _rejects_all(self) -> bool:
        return 0 < self._rejections <= len(self._rejected)

    def _fail(self, error: str, now: float, rng: RandomSource) -> None:
        if self._open_until is None or self._probe_sent_at is not None:
            self._open(error, now, rng)

    def _open(self, error: str, now: float, rng: RandomSource) -> None:
        self._openings += 1
        self._open_until = now + self._wait(self._openings, rng)
        self._probe_sent_at = None
        self.error = error

    def _close(self) -> None:
        self._openings = 0
        self._open_until = None
        self._probe_sent_at = None
        self.error = ""

    def _wait(self, failures: int, rng: RandomSource) -> float:
        return self._probe.delay_after(failures, rng) or 0.0

    def _forced_pause(self, now: float) -> float:
        return max(0.0, self._forced_pause_until - now)

    def _reset_forced_pause(self) -> None:
        self._forced_pauses = 0
        self._forced_pause_until = _LONG_AGO

    def _probe_pause(self, now: float) -> float:
        return 0.0 if self._probe_sent_at is None else max(0.0, self._probe_sent_at + PROBE_TIMEOUT - now)


_ROUNDING = 1e-6  # seconds: rounding must not end a wait too early


class RateLimit:
    """`rate` messages a second, at most `burst` of them at once (a second's worth, and at least one, by default).

    Raises ConfigurationError for a rate that lets nothing through, or a burst that is less than one message.
    """

    def __init__(self, rate: float, burst: float | None = None) -> None:
        if not 0 < rate < float("inf"):
            raise ConfigurationError(
                f"rate_limit {rate} must be a finite number above zero; to stop sending, pause the destination"
            )
        if burst is not None and not 1 <= burst < float("inf"):
            raise ConfigurationError(f"the burst of a rate_limit is {burst}: it must be at least one message")
        self._whole_rate = rate
        self._whole_burst = max(1.0, rate) if burst is None else burst
        self._relays = 1
        self._filled = self._whole_burst
        self._at: float | None = None

    def may_send(self, now: float) -> int:
        """How many messages may be sent now."""
        self._fill(now)
        return max(0, int(self._filled))

    def sent(self, count: int, now: float) -> None:
        """This many were sent; more than were allowed are a debt."""
        self._fill(now)
        self._filled -= count

    def wait(self, now: float) -> float:
        """Seconds until one more may be sent; 0: now."""
        if self.may_send(now):
            return 0.0
        return (1 - self._filled) / self._rate + _ROUNDING

    def share(self, relays: int) -> None:
        """Take only this relay's part of the limit; what flowed in since the last call counts at the new rate."""
        self._relays = max(1, relays)

    @property
    def _rate(self) -> float:
        return self._whole_rate / self._relays

    @property
    def _burst(self) -> float:
        return max(1.0, self._whole_burst / self._relays)

    def _fill(self, now: float) -> None:
        elapsed = 0.0 if self._at is None else max(0.0, now - self._at)
        self._at = now if self._at is None else max(now, self._at)
        self._filled = min(self._burst, self._filled + elapsed * self._rate)


@dataclass(slots=True, eq=False)
class DestinationState:
    """The state of one destination on this relay: its breaker, its rate limit, and the operators' override."""

    endpoint: DestinationEndpoint
    breaker: CircuitBreaker
    limit: RateLimit | None = None
    rate: float | None = None
    parked: bool = False
    """Messages were parked for it, or may have been by another relay: fetch them when it is available."""
    full: bool = False
    """Sends that have not returned occupy its whole share of the transport."""
    at_fault: bool = False
    """Its last failure was its own, such as a full queue or a handler that hangs, and no outage that others share."""
    used: float = 0.0
    """When it was created, or something was last sent to it."""
    reported: tuple[str, bool, float] = HEALTHY
    """The last state that was announced, whether it fails all the same, and until when: late results of one outage
    do not announce it again."""

    failing: bool = False
    """Its last send failed, and its breaker stays closed because outages count as attempts: shown as half-open."""

    @property
    def is_healthy(self) -> bool:
        """Whether it is available, as far as was announced."""
        return self.reported == HEALTHY

    def saturated(self, now: float) -> bool:
        """Hanging sends occupy its whole share: not even a probe can go."""
        return self.full and self.breaker.state(now) != "closed"

    def state(self, now: float) -> str:
        """What other relays see: whether they should take messages for this destination."""
        return "open" if self.saturated(now) else self.breaker.state(now)

    def fails_alone(self, now: float) -> bool:
        """Whether it is available, or unavailable for a reason that concerns no other destination."""
        breaker = self.breaker
        if breaker.paused or breaker.forced == "open" or self.at_fault:
            return True
        return breaker.state(now) == "closed" and not breaker.fails

    def may_send(self, now: float) -> int:
        """How many messages may be sent to it now."""
        if self.breaker.is_clean and self.limit is None:
            return UNLIMITED  # as for nearly every message
        if self.saturated(now):
            return 0
        allowed = self.breaker.may_send(now)
        return min(allowed, self.limit.may_send(now)) if self.limit is not None else allowed

    def sent(self, count: int, now: float) -> bool:
        """This many messages were sent; returns whether they are the probe."""
        self.used = now
        if self.limit is not None:
            self.limit.sent(count, now)
        return self.breaker.sent(count, now)

    def set_rate(self, override: float | None, relays: int) -> None:
        """Use the operators' rate, else the configured one; this relay's share of it."""
        configured = self.endpoint.destination.rate_limit
        rate = override if override is not None else None if configured is None else per_second(configured)
        if rate is None:
            self.limit, self.rate = None, None
            return
        if self.limit is None or rate != self.rate:
            self.limit, self.rate = RateLimit(rate), rate
        self.limit.share(max(1, relays))

    def wait(self, now: float) -> float:
        """Seconds until something may be sent to it again."""
        if self.saturated(now):
            return NEVER
        if self.breaker.may_send(now) == 0:
            return self.breaker.next_attempt(now)
        return self.limit.wait(now) if self.limit is not None else 0.0
