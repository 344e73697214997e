"""Whether a destination takes anything now, as one relay sees it.

    closed ──── unavailable, or so many different messages rejected in a row ────▶ open
    open ────── the wait is over ────▶ half-open: one message goes, and its answer decides
    half-open ─ accepted ────▶ closed
              ─ unavailable, or rejected where rejections opened it ────▶ open, for longer
    open, half-open ─ its transport reconnected ────▶ closed, unless rejections opened it

What must stay true: it moves only when told the time; one probe is out at a time; it stays shut for ever only if a
person wants it so, not even when the answer to a probe is lost; answers that come late, from before it opened, do not
lengthen the wait. A lot of which every message was nacked (a full queue) counts
as unavailable; a nack among messages that were accepted does not count. Held closed by a person, it lets everything
through, but after an outage it rests for as long as it would wait for a probe: nobody is served by a hot loop.
"""

from __future__ import annotations

from typing import Literal

from pillarbox.core.clock import Chance, system_chance
from pillarbox.core.errors import ConfigurationError
from pillarbox.core.outcome import LONGEST_DELAY
from pillarbox.core.retry import ExponentialBackoff, RetryPolicy
from pillarbox.core.store import Forced

State = Literal["closed", "open", "half-open"]

UNLIMITED = 1_000_000
PATIENCE = 60.0
"""Seconds after which the answer to a probe is no longer expected and another may go."""

_LONG_AGO = float("-inf")
_PROBE = ExponentialBackoff(base="1s", max="2s", jitter="full", max_attempts=0)


class CircuitBreaker:
    """The breaker of one destination. `rejections`: how many different messages in a row; 0 = they never open it.

    Raises ConfigurationError for a probe policy that gives up: an outage may last longer.
    """

    def __init__(self, *, probe: RetryPolicy = _PROBE, rejections: int = 20) -> None:
        if probe.delay(1_000_000, system_chance()) is None:
            raise ConfigurationError("the probes of a breaker must not end: give their policy max_attempts=0")
        if rejections < 0:
            raise ConfigurationError(f"a breaker opens after {rejections} rejections: 0 means never")
        self.error = ""
        """Why it is open; '' when closed."""
        self.paused = False
        self.forced: Forced | None = None
        self._probe = probe
        self._rejections = rejections
        self._rejected: set[str] = set()  # since something was accepted; never more than `rejections`
        self._openings = 0
        self._shut_until: float | None = None
        self._probe_sent_at: float | None = None
        self._rests = 0
        self._rests_until = _LONG_AGO

    @property
    def fails(self) -> bool:
        """It would be shut if no person held it closed."""
        return self.forced == "closed" and self._shut_until is not None

    @property
    def untouched(self) -> bool:
        """It is as it was made: closed, and nobody set anything."""
        return self._shut_until is None and self.forced is None and not self.paused and not self._rejected

    def state(self, now: float) -> State:
        """What people see. A pause is told apart, by `paused`."""
        if self.forced is not None:
            return self.forced
        if self._shut_until is None:
            return "closed"
        return "open" if now < self._shut_until else "half-open"

    def may_send(self, now: float) -> int:
        """How many messages may go now."""
        if self.paused:
            return 0
        match self.state(now):
            case "closed":
                return 0 if self._rest(now) else UNLIMITED
            case "half-open":
                return 0 if self._patience(now) else 1
            case "open":
                return 0

    def next_try(self, now: float) -> float:
        """Seconds until something may go; a hundred years where only a person can change it."""
        if self.paused or self.forced == "open":
            return LONGEST_DELAY
        match self.state(now):
            case "closed":
                return self._rest(now)
            case "half-open":
                return self._patience(now)
            case "open":
                return max(0.0, (self._shut_until or now) - now)

    def sent(self, count: int, now: float) -> None:
        """So many messages went; in half-open that is the probe."""
        if count and self.state(now) == "half-open":
            self._probe_sent_at = now

    def unanswered(self) -> None:
        """The probe ended without an answer of the destination: another one may go."""
        self._probe_sent_at = None

    def accepted(self, now: float) -> None:
        """The destination took something: it can be reached, whatever was believed before."""
        self._close()
        self._rested()
        self._rejected.clear()

    def reachable(self) -> None:
        """Its transport was unreachable and has reconnected: do not wait for the next probe."""
        if not self._rejects_all():
            self._close()
            self._rested()

    def unavailable(self, error: str, now: float, chance: Chance) -> None:
        """The destination takes nothing: wait, longer each time."""
        if self.forced == "closed" and now >= self._rests_until:
            self._rests += 1
            self._rests_until = now + self._wait(self._rests, chance)
        self._fail(error, now, chance)

    def rejected(self, event_id: str, now: float, chance: Chance) -> None:
        """The destination answered, and would not take this one message."""
        if self._probe_sent_at is not None and not self._rejects_all():
            self._close()
        if len(self._rejected) < self._rejections:
            self._rejected.add(event_id)
        if self._rejects_all():
            self._fail(f"rejected {self._rejections} different messages in a row, accepted none", now, chance)

    def force(self, state: Forced | None) -> None:
        """A person's word stands above all answers, until taken back with None. Answers are noted all the same."""
        if state not in (None, "closed", "open"):
            raise ConfigurationError(f"a breaker may be held closed or open, not {state!r}")
        if state != self.forced:
            self._rested()
        self.forced = state

    def pause(self) -> None:
        """Nothing goes until `resume`, in whatever state."""
        self.paused = True

    def resume(self) -> None:
        """Go on in the state it is in."""
        self.paused = False

    def _rejects_all(self) -> bool:
        return 0 < self._rejections <= len(self._rejected)

    def _fail(self, error: str, now: float, chance: Chance) -> None:
        if self._shut_until is None or self._probe_sent_at is not None:
            self._open(error, now, chance)

    def _open(self, error: str, now: float, chance: Chance) -> None:
        self._openings += 1
        self._shut_until = now + self._wait(self._openings, chance)
        self._probe_sent_at = None
        self.error = error

    def _close(self) -> None:
        self._openings = 0
        self._shut_until = None
        self._probe_sent_at = None
        self.error = ""

    def _wait(self, failures: int, chance: Chance) -> float:
        return self._probe.delay(failures, chance) or 0.0

    def _rest(self, now: float) -> float:
        return max(0.0, self._rests_until - now)

    def _rested(self) -> None:
        self._rests = 0
        self._rests_until = _LONG_AGO

    def _patience(self, now: float) -> float:
        return 0.0 if self._probe_sent_at is None else max(0.0, self._probe_sent_at + PATIENCE - now)


_A_MOMENT = 1e-6  # rounding must not end a wait a hair too early


class RateLimit:
    """`rate` messages a second, at most `burst` of them at once (a second's worth, and at least one, by default).

    Raises ConfigurationError for a rate that lets nothing through, or a burst that is less than one message.
    """

    def __init__(self, rate: float, burst: float | None = None) -> None:
        if not 0 < rate < float("inf"):
            raise ConfigurationError(f"rate_limit is {rate} per second: more than zero, or pause the destination")
        if burst is not None and not 1 <= burst < float("inf"):
            raise ConfigurationError(f"the burst of a rate_limit is {burst}: at least one message")
        self._whole_rate = rate
        self._whole_burst = max(1.0, rate) if burst is None else burst
        self._relays = 1
        self._filled = self._whole_burst
        self._at: float | None = None

    def may_send(self, now: float) -> int:
        """How many messages may go now."""
        self._fill(now)
        return max(0, int(self._filled))

    def sent(self, count: int, now: float) -> None:
        """So many went; more than were allowed are a debt."""
        self._fill(now)
        self._filled -= count

    def wait(self, now: float) -> float:
        """Seconds until one more may go; 0: now."""
        if self.may_send(now):
            return 0.0
        return (1 - self._filled) / self._rate + _A_MOMENT

    def share(self, relays: int) -> None:
        """Take only this relay's part of the limit; what flowed in since the last look counts at the new rate."""
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
