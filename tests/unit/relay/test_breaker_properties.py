"""Invariants of a breaker under random events."""

from __future__ import annotations

import random

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from pillarbox.core.outcome import MAX_DELAY
from pillarbox.core.store import ForcedBreakerState
from pillarbox.relay.destination_state import PROBE_TIMEOUT, UNLIMITED, CircuitBreaker

REJECTIONS = 3
LONGEST_WAIT = 60.0
ROUNDING = 1e-6
FORCED: list[ForcedBreakerState | None] = ["closed", "open", None]


class Breaker(RuleBasedStateMachine):
    """A relay that sends what the breaker allows, early, late and missing results, and overrides."""

    def __init__(self) -> None:
        super().__init__()
        self.breaker = CircuitBreaker(rejections=REJECTIONS)
        self.rng = random.Random(11)
        self.now = 0.0
        self.probe_sent_at: float | None = None
        self.rejected_since_accepted: set[int] = set()

    @rule(seconds=st.floats(0, 200))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def waits_for_the_next_probe(self) -> None:
        if (wait := self.breaker.next_attempt(self.now)) < MAX_DELAY:
            self.now += wait
            self.now += ROUNDING
            assert self.breaker.may_send(self.now) >= 1

    @rule(wanted=st.integers(1, 500))
    def sends(self, wanted: int) -> None:
        count = min(wanted, self.breaker.may_send(self.now))
        if count and self.breaker.state(self.now) == "half-open":
            assert self.probe_sent_at is None or self.now - self.probe_sent_at >= PROBE_TIMEOUT - ROUNDING
            self.probe_sent_at = self.now
        self.breaker.sent(count, self.now)

    @rule()
    def is_accepted(self) -> None:
        self.breaker.accepted(self.now)
        self.probe_sent_at = None
        self.rejected_since_accepted.clear()
        assert self.breaker.forced or self.breaker.state(self.now) == "closed"

    @rule()
    def is_unavailable(self) -> None:
        self.breaker.unavailable("down", self.now, self.rng)
        self.probe_sent_at = None
        assert self.breaker.forced or self.breaker.state(self.now) != "closed"

    @rule(number=st.integers(0, 5))
    def is_rejected(self, number: int) -> None:
        before = self.breaker.state(self.now)
        self.rejected_since_accepted.add(number)
        self.breaker.rejected(f"evt-{number}", self.now, self.rng)
        self.probe_sent_at = None
        if before == "closed" and self.breaker.state(self.now) != "closed":
            assert len(self.rejected_since_accepted) >= REJECTIONS

    @rule(state=st.sampled_from(FORCED))
    def an_operator_forces(self, state: ForcedBreakerState | None) -> None:
        self.breaker.force(state)

    @rule()
    def an_operator_pauses(self) -> None:
        self.breaker.pause()

    @rule()
    def an_operator_resumes(self) -> None:
        self.breaker.resume()

    @invariant()
    def the_allowed_number_depends_on_the_state(self) -> None:
        allowed = {"closed": (UNLIMITED,), "half-open": (0, 1), "open": (0,)}[self.breaker.state(self.now)]
        if self.breaker.forced == "closed":
            allowed = (0, UNLIMITED)  # after a failure it backs off all the same
        assert self.breaker.may_send(self.now) in (allowed if not self.breaker.paused else (0,))

    @invariant()
    def it_closes_again_unless_an_operator_forces_it_open(self) -> None:
        wait = self.breaker.next_attempt(self.now)
        if self.breaker.paused or self.breaker.forced == "open":
            assert wait == MAX_DELAY
        else:
            assert 0 <= wait <= max(LONGEST_WAIT, PROBE_TIMEOUT) + ROUNDING
            assert (wait == 0) == (self.breaker.may_send(self.now) > 0)

    @invariant()
    def reading_changes_nothing(self) -> None:
        results = [(self.breaker.state(self.now), self.breaker.may_send(self.now)) for _ in range(2)]
        assert results[0] == results[1]


TestBreaker = Breaker.TestCase
