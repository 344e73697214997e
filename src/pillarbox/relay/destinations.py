"""The state of every destination on this relay, and the operators' overrides.

A destination that says it is gone is paused for all relays: the relay sets the override that an operator would set, and
only an operator ends it.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, cast

from pillarbox.admin.admin import AdminStore
from pillarbox.core.clock import Clock, RandomSource
from pillarbox.core.observations import Announcer, BreakerChanged, DestinationOverridden
from pillarbox.core.store import EVERYWHERE, Override, Store
from pillarbox.core.transport import Transport
from pillarbox.relay.config import BreakerConfig
from pillarbox.relay.destination_state import NEVER, UNLIMITED, CircuitBreaker, DestinationState
from pillarbox.relay.routing import DestinationEndpoint

if TYPE_CHECKING:
    from pillarbox.relay.relay import RelayContext

SEARCH_EVERY = 1.0
"""Seconds between two rounds that park messages to find destinations that are unknown so far."""
IDLE_AFTER = 60.0
"""Seconds without a send after which the state of a healthy destination is dropped."""
MAX_IDLE_STATES = 1000
"""Beyond this many destinations, the states of healthy ones are dropped at once: every round visits all."""
REPORTED_PER_ROUND = 100
"""Destinations whose state is written, per round; the others follow in the next."""


class DestinationStates:
    """The state of each destination, created when a message for it is fetched."""

    def __init__(
        self,
        *,
        relay: str,
        clock: Clock,
        rng: RandomSource,
        announce: Announcer,
        breaker: BreakerConfig,
        by_type: bool = False,
    ) -> None:
        """by_type: event types create destinations, so that there may be others than those known so far."""
        self.relay = relay
        self._probe = breaker.policy
        self._clock = clock
        self._rng = rng
        self._announce = announce
        self._states: dict[str, DestinationState] = {}
        self._overrides: dict[str, Override] = {}
        self._gone: set[str] = set()
        """Destinations that said they are gone: paused here, and for all relays as soon as that is written."""
        self._relays = 1
        self._by_type = by_type
        self._next_search = 0.0
        self.searching = False
        """Whether unknown destinations may be available: see `begin_round`."""
        self.changed: dict[str, tuple[str, float]] = {}
        """Destinations whose breaker changed: error and seconds to the next probe, for the store to show."""
        self.doubted: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        """Transport → set when one of its destinations was unavailable: it may have lost its connection."""

    def of(self, endpoint: DestinationEndpoint) -> DestinationState:
        state = self._states.get(endpoint.name)
        if state is None:
            state = DestinationState(endpoint, CircuitBreaker(probe=self._probe), used=self._clock.monotonic())
            self._states[endpoint.name] = state
            self._apply_override(state)
        return state

    def __iter__(self) -> Iterator[DestinationState]:
        return iter(list(self._states.values()))

    @property
    def several(self) -> bool:
        return len(self._states) > 1

    def fetch_parked(self, names: Collection[str]) -> None:
        """Messages were parked for these, by whatever relay: fetch them when they are available."""
        for name in self._states.keys() & names:
            self._states[name].parked = True

    def drop_idle(self, in_flight: Callable[[str], int]) -> None:
        """Drop the states of healthy destinations to which nothing was sent for a while; event types create many."""
        before = self._clock.monotonic() - (IDLE_AFTER if len(self._states) <= MAX_IDLE_STATES else 0.0)
        for name, state in list(self._states.items()):
            if (
                state.used <= before
                and state.is_healthy
                and not state.parked
                and state.breaker.is_clean
                and name not in self._overrides
                and name not in self.changed
                and not in_flight(name)
            ):
                del self._states[name]

    def begin_round(self) -> None:
        """Decide whether this round searches for unknown destinations, by parking messages for those
        that are unavailable: unless the reason is an outage, which is probably the outage of all. At most once per
        second, because of the writes; at once where a handler has used up its share."""
        now = self._clock.monotonic()
        self.searching = self._may_search(now)
        if self.searching and any(
            state.may_send(now) < UNLIMITED and state.endpoint.transport.pace.capacity is None for state in self
        ):
            self.searching = now >= self._next_search
            if self.searching:
                self._next_search = now + SEARCH_EVERY

    def _may_search(self, now: float) -> bool:
        everywhere = self._overrides.get(EVERYWHERE)
        if not self._by_type or (everywhere is not None and everywhere.paused):
            return False
        return all(state.fails_alone(now) for state in self)

    def any_available(self) -> bool:
        """Whether any destination is available, as far as is known; before the first one is known, yes."""
        return not self._states or bool(self.some_available(1))

    def some_available(self, limit: int) -> list[str]:
        """The names of up to `limit` available destinations, '' for the unknown ones."""
        now = self._clock.monotonic()
        # An outage may have begun since the round did.
        unknown = [""] if self.searching and self._may_search(now) else []
        known = (name for name, state in self._states.items() if state.may_send(now) > 0)
        return list(islice(chain(unknown, known), limit))

    def wait(self) -> float:
        """Seconds until the first unavailable destination may become available."""
        now = self._clock.monotonic()
        waits = [state.wait(now) for state in self if state.may_send(now) == 0]
        return min(waits, default=NEVER)

    def next_probe(self) -> float:
        """Seconds until the first open breaker lets a probe through."""
        now = self._clock.monotonic()
        waits = [state.breaker.next_attempt(now) for state in self if state.breaker.state(now) == "open"]
        return min(waits, default=NEVER)

    def reconnected(self, transport: Transport) -> None:
        """The transport reconnected: its destinations need not wait for their probes."""
        now = self._clock.monotonic()
        for state in self:
            if state.endpoint.transport is transport:
                self._recovered(state)
                if not state.is_healthy and not state.at_fault:
                    state.breaker.reachable(now)
                    self._report(state, "")

    def override(self, overrides: Iterable[Override], *, relays: int) -> None:
        """Apply the operators' overrides, and take this relay's share of every rate."""
        before, self._overrides = self._overrides, {one.destination: one for one in overrides}
        self._relays = relays
        for name in sorted(before.keys() | self._overrides.keys()):
            self._announce_override(name, before.get(name, _unset(name)), self._overrides.get(name, _unset(name)))
        for state in self._states.values():
            self._apply_override(state)

    def paused(self) -> frozenset[str]:
        """What operators paused, whether or not it is known here."""
        return frozenset(name for name, one in self._overrides.items() if one.paused)

    def _announce_override(self, name: str, before: Override, now: Override) -> None:
        if now._replace(last_error=None) != before._replace(last_error=None):
            paused, breaker, limit = now.paused, now.breaker, now.rate_limit
            self._announce(
                DestinationOverridden(
                    relay=self.relay, destination=name, paused=paused, breaker=breaker, rate_limit=limit
                )
            )

    def _apply_override(self, state: DestinationState) -> None:
        one, everywhere = self._overrides.get(state.endpoint.name), self._overrides.get(EVERYWHERE)
        paused = any(override is not None and override.paused for override in (one, everywhere))
        if paused or state.endpoint.name in self._gone:
            state.breaker.pause()
        else:
            state.breaker.resume()
        state.breaker.force(one.breaker if one is not None else None)
        state.set_rate(one.rate_limit if one is not None else None, self._relays)

    def excluded(self, others: Iterable[Mapping[str, str]]) -> bool:
        """Whether this relay can send nothing while another one can: then that one should own its lanes."""
        return _is_excluded(self.states(), others)

    def sharing(self, others: Sequence[Mapping[str, str]]) -> int:
        """How many relays share the lanes: this one, and every other one that can send."""
        every = (self.states(), *others)
        return 1 + sum(not _is_excluded(theirs, every) for theirs in others)

    def states(self) -> Mapping[str, str]:
        now = self._clock.monotonic()
        return {name: self._shown(state, now) for name, state in self._states.items()}

    def failing(self, state: DestinationState, error: str) -> None:
        """The destination failed, and every message is retried by its own schedule."""
        if not state.failing:
            state.failing = True
            name = state.endpoint.name
            self._announce(BreakerChanged(relay=self.relay, destination=name, state="half-open", error=error))
        self.changed[state.endpoint.name] = (error, 0.0)
        self.doubted[state.endpoint.transport_name].set()

    def _recovered(self, state: DestinationState) -> None:
        if state.failing:
            state.failing = False
            self.changed[state.endpoint.name] = ("", 0.0)
            self._announce(BreakerChanged(relay=self.relay, destination=state.endpoint.name, state="closed"))

    def _shown(self, state: DestinationState, now: float) -> str:
        shown = state.state(now)
        return "half-open" if state.failing and shown == "closed" else shown

    def rates(self) -> Mapping[str, float]:
        """Messages per second that this relay may send, where there is a limit."""
        shared = max(1, self._relays)
        return {name: state.rate / shared for name, state in self._states.items() if state.rate is not None}

    def accepted(self, state: DestinationState) -> None:
        if state.breaker.is_clean and state.is_healthy and not (state.at_fault or state.failing or self._overrides):
            return  # as after nearly every message
        state.at_fault = False
        state.breaker.accepted(self._clock.monotonic())
        self._report(state, "")
        self._recovered(state)
        known = self._overrides.get(state.endpoint.name)
        if known is not None and known.breaker == "closed" and known.last_error is not None:
            # Another relay reported an error, perhaps an outdated one, and no breaker shows that it is over.
            self.changed.setdefault(state.endpoint.name, ("", 0.0))

    def unavailable(
        self, state: DestinationState, error: str, *, at_fault: bool = False, retry_after: float = 0.0
    ) -> None:
        """It is unavailable; `at_fault`: which says nothing about other destinations."""
        state.at_fault = at_fault
        state.breaker.unavailable(error, self._clock.monotonic(), self._rng, retry_after=retry_after)
        self._report(state, error)
        if not at_fault:
            self.doubted[state.endpoint.transport_name].set()

    def gone(self, state: DestinationState) -> None:
        """It said that it is gone: pause it until an operator resumes it."""
        self._gone.add(state.endpoint.name)
        self._apply_override(state)

    def rejected(self, state: DestinationState, event_ids: Iterable[str], error: str) -> None:
        state.at_fault = True
        for event_id in event_ids:
            state.breaker.rejected(event_id, self._clock.monotonic(), self._rng)
        self._report(state, error)

    def _report(self, state: DestinationState, error: str) -> None:
        now = self._clock.monotonic()
        shown, fails = state.breaker.state(now), state.breaker.fails
        next_attempt = state.breaker.next_attempt(now) if shown == "open" or fails else 0.0
        report = (shown, fails, round(now + next_attempt, 3) if next_attempt else 0.0)
        if report == state.reported:
            return
        state.reported = report
        state.parked = True
        name = state.endpoint.name
        self.changed[name] = (error if shown == "open" or fails else "", next_attempt)
        changed = BreakerChanged(relay=self.relay, destination=name, state=shown, error=error, next_probe=next_attempt)
        self._announce(changed)

    async def exchange(self, context: RelayContext) -> None:
        """Write to the store which breakers changed, and read the operators' overrides."""
        for destination, change in list(self.changed.items())[:REPORTED_PER_ROUND]:
            error, next_attempt = change
            await context.store.destinations.report(
                destination, error=error or None, next_attempt=next_attempt if error and next_attempt else None
            )
            # Only once it is written, and unless it changed again meanwhile.
            if self.changed.get(destination) == change:
                del self.changed[destination]
        await self._pause_gone(context.store)
        self.override(await context.store.destinations.overrides(), relays=context.ownership.relays)
        for name, state in self._states.items():
            # An operator paused it or forced it open: it stays unavailable until an operator changes that.
            if state.breaker.paused or state.breaker.forced == "open":
                context.release(context.in_flight.unsent(name))

    async def _pause_gone(self, store: Store) -> None:
        """Pause for all relays what said that it is gone. A store without operator requests leaves it paused here."""
        if store.capabilities.requests:
            for name in sorted(self._gone):
                await cast(AdminStore, store).admin.requests.override(name, paused=True, by=f"relay {self.relay}")
                self._gone.discard(name)


def _unset(destination: str) -> Override:
    return Override(destination, paused=False, breaker=None, rate_limit=None, last_error=None)


def _is_excluded(states: Mapping[str, str], others: Iterable[Mapping[str, str]]) -> bool:
    if not states or any(state != "open" for state in states.values()):
        return False
    return any(state == "closed" for theirs in others for name, state in theirs.items() if name in states)
