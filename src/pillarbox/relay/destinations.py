"""The gate of each destination on this relay: its breaker, its rate, and what people set."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from pillarbox.core.clock import Chance, Clock
from pillarbox.core.errors import UnavailableError
from pillarbox.core.observations import (
    Announcer,
    BreakerChanged,
    DestinationOverridden,
    TransportConnected,
    TransportFailed,
)
from pillarbox.core.retry import Backoff
from pillarbox.core.store import EVERYWHERE, Override
from pillarbox.core.transport import Transport
from pillarbox.relay.breaker import CircuitBreaker, RateLimit
from pillarbox.relay.config import BreakerConfig
from pillarbox.relay.routing import Place, per_second

A_LOT = 1_000_000
NEVER = 3600.0
SEARCH_EVERY = 1.0
IDLE = 60.0
"""Seconds without a send after which a gate that says nothing special is forgotten."""
MOST_IDLE = 1000
"""Beyond so many gates, those that say nothing special are forgotten at once: every round looks at all there are."""
_WELL = ("closed", False, 0.0)


@dataclass(slots=True, eq=False)
class Gate:
    """What lets messages through to one destination."""

    place: Place
    breaker: CircuitBreaker
    limit: RateLimit | None = None
    rate: float | None = None
    aside: bool = False
    """Messages were put aside for it, or may have been by somebody else: look for them when it opens."""
    full: bool = False
    """Sends that have not returned occupy its whole share of the transport."""
    at_fault: bool = False
    """Its last failure was its own, such as a full queue or a handler that hangs, and no outage that others share."""
    used: float = 0.0
    """When it was made, or something was last sent through it."""
    reported: tuple[str, bool, float] = _WELL
    """The last state that was announced, whether it fails all the same, and until when: late answers of one outage
    open nothing anew."""

    failing: bool = False
    """It was unavailable at last, and is not closed because outages count as attempts: shown as half-open."""

    @property
    def well(self) -> bool:
        """As far as was announced."""
        return self.reported == _WELL

    def stuck(self, now: float) -> bool:
        """Hanging sends occupy its whole share: not even a probe can go."""
        return self.full and self.breaker.state(now) != "closed"

    def state(self, now: float) -> str:
        """What other relays see: whether messages for this destination are better off with them."""
        return "open" if self.stuck(now) else self.breaker.state(now)

    def own_reason(self, now: float) -> bool:
        """Whether what keeps it shut, if anything does, says nothing about other destinations."""
        breaker = self.breaker
        if breaker.paused or breaker.forced == "open" or self.at_fault:
            return True
        return breaker.state(now) == "closed" and not breaker.fails

    def may_send(self, now: float) -> int:
        if self.stuck(now):
            return 0
        allowed = self.breaker.may_send(now)
        return min(allowed, self.limit.may_send(now)) if self.limit is not None else allowed

    def sent(self, count: int, now: float) -> None:
        self.used = now
        self.breaker.sent(count, now)
        if self.limit is not None:
            self.limit.sent(count, now)

    def set_rate(self, steered: float | None, relays: int) -> None:
        """The rate that people set, else the configured one; this relay's share of it."""
        configured = self.place.destination.rate_limit
        rate = steered if steered is not None else None if configured is None else per_second(configured)
        if rate is None:
            self.limit, self.rate = None, None
            return
        if self.limit is None or rate != self.rate:
            self.limit, self.rate = RateLimit(rate), rate
        self.limit.share(max(1, relays))

    def wait(self, now: float) -> float:
        """Seconds until it may let something through again."""
        if self.stuck(now):
            return NEVER
        if self.breaker.may_send(now) == 0:
            return self.breaker.next_try(now)
        return self.limit.wait(now) if self.limit is not None else 0.0


class Gates:
    """One gate per destination, made when it is first met."""

    def __init__(
        self,
        *,
        relay: str,
        clock: Clock,
        chance: Chance,
        announce: Announcer,
        breaker: BreakerConfig,
        by_type: bool = False,
    ) -> None:
        """`by_type`: event types make destinations as they come, so that there may be others than those met so far."""
        self.relay = relay
        self._probe = breaker.policy
        self._clock = clock
        self._chance = chance
        self._announce = announce
        self._gates: dict[str, Gate] = {}
        self._wanted: dict[str, Override] = {}
        self._relays = 1
        self._by_type = by_type
        self._next_search = 0.0
        self.searching = False
        """Whether others than those met so far may take something: see `begin_round`."""
        self.changed: dict[str, tuple[str, float]] = {}
        """Destinations whose breaker changed: error and seconds to the next try, for the store to show."""
        self.on_doubt: Callable[[Transport], None] = lambda _: None
        """Told the transport of a destination that was unavailable: it may have lost its connection."""

    def of(self, place: Place) -> Gate:
        gate = self._gates.get(place.name)
        if gate is None:
            gate = Gate(place, CircuitBreaker(probe=self._probe), used=self._clock.monotonic())
            self._gates[place.name] = gate
            self._steer(gate)
        return gate

    def __iter__(self) -> Iterator[Gate]:
        return iter(list(self._gates.values()))

    @property
    def several(self) -> bool:
        """Whether more than one destination was met."""
        return len(self._gates) > 1

    def look_aside(self, names: Collection[str]) -> None:
        """Messages were put aside for these, whoever did it: look for them."""
        for name in names:
            if name in self._gates:
                self._gates[name].aside = True

    def forget_idle(self, in_flight: Callable[[str], int]) -> None:
        """Drop the gates through which nothing went for a while and which say nothing special: they are made again
        when they are needed. For destinations that event types made, of which there may be many."""
        before = self._clock.monotonic() - (IDLE if len(self._gates) <= MOST_IDLE else 0.0)
        for name, gate in list(self._gates.items()):
            if (
                gate.used <= before
                and gate.well
                and not gate.aside
                and gate.breaker.untouched
                and name not in self._wanted
                and name not in self.changed
                and not in_flight(name)
            ):
                del self._gates[name]

    def begin_round(self) -> None:
        """Decide whether this round makes way for destinations that were not met so far, by putting messages aside for
        those that take nothing: unless an outage keeps one shut, which is probably the outage of all. At most once per
        second, because of the writes; at once where a handler has used up its share."""
        now = self._clock.monotonic()
        self.searching = self._may_search(now)
        if self.searching and any(
            gate.may_send(now) < A_LOT and gate.place.transport.pace.room is None for gate in self
        ):
            self.searching = now >= self._next_search
            if self.searching:
                self._next_search = now + SEARCH_EVERY

    def _may_search(self, now: float) -> bool:
        everywhere = self._wanted.get(EVERYWHERE)
        if not self._by_type or (everywhere is not None and everywhere.paused):
            return False
        return all(gate.own_reason(now) for gate in self)

    def any_open(self) -> bool:
        """Whether any destination takes anything now, as far as is known; before the first one is met, yes."""
        return not self._gates or bool(self.some_open(1))

    def some_open(self, most: int) -> list[str]:
        """The names of up to `most` destinations that take something now, '' for those that were not met so far."""
        now = self._clock.monotonic()
        # An outage may have begun since the round did.
        unmet = [""] if self.searching and self._may_search(now) else []
        met = (name for name, gate in self._gates.items() if gate.may_send(now) > 0)
        return list(islice(chain(unmet, met), most))

    def shut(self) -> list[str]:
        """Destinations that a person closed: nothing goes there, however long one waits."""
        return [name for name, gate in self._gates.items() if gate.breaker.paused or gate.breaker.forced == "open"]

    def wait(self) -> float:
        """Seconds until the first closed gate may open."""
        now = self._clock.monotonic()
        waits = [gate.wait(now) for gate in self if gate.may_send(now) == 0]
        return min(waits, default=NEVER)

    def next_probe(self) -> float:
        """Seconds until the first open breaker lets a probe through."""
        now = self._clock.monotonic()
        waits = [gate.breaker.next_try(now) for gate in self if gate.breaker.state(now) == "open"]
        return min(waits, default=NEVER)

    def reconnected(self, transport: Transport) -> None:
        """The transport was unreachable and is back: its destinations need not wait for their probes."""
        for gate in self:
            if gate.place.transport is transport:
                self._fails_no_more(gate)
                if not gate.well and not gate.at_fault:
                    gate.breaker.reachable()
                    self._report(gate, "")

    def steer(self, steering: Iterable[Override], *, relays: int) -> None:
        """Do what people set, and take this relay's share of every rate."""
        before, self._wanted = self._wanted, {one.destination: one for one in steering}
        self._relays = relays
        for name in sorted(before.keys() | self._wanted.keys()):
            self._tell(name, before.get(name, _untouched(name)), self._wanted.get(name, _untouched(name)))
        for gate in self._gates.values():
            self._steer(gate)

    def paused(self) -> frozenset[str]:
        """What people paused, whether or not it was met here."""
        return frozenset(name for name, one in self._wanted.items() if one.paused)

    def _tell(self, name: str, before: Override, now: Override) -> None:
        if now._replace(last_error=None) != before._replace(last_error=None):
            self._announce(
                DestinationOverridden(
                    relay=self.relay,
                    destination=name,
                    paused=now.paused,
                    breaker=now.breaker,
                    rate_limit=now.rate_limit,
                )
            )

    def _steer(self, gate: Gate) -> None:
        one, everywhere = self._wanted.get(gate.place.name), self._wanted.get(EVERYWHERE)
        if (one is not None and one.paused) or (everywhere is not None and everywhere.paused):
            gate.breaker.pause()
        else:
            gate.breaker.resume()
        gate.breaker.force(one.breaker if one is not None else None)
        gate.set_rate(one.rate_limit if one is not None else None, self._relays)

    def shut_out(self, others: Iterable[Mapping[str, str]]) -> bool:
        """Whether this relay can send nothing while another one can: then its lanes are better off there."""
        return _shut_out(self.states(), others)

    def sharing(self, others: Sequence[Mapping[str, str]]) -> int:
        """How many relays share the lanes: this one, and every other one that is not shut out."""
        everybody = (self.states(), *others)
        return 1 + sum(not _shut_out(theirs, everybody) for theirs in others)

    def states(self) -> Mapping[str, str]:
        now = self._clock.monotonic()
        return {name: self._shown(gate, now) for name, gate in self._gates.items()}

    def failing(self, gate: Gate, error: str) -> None:
        """The destination was unavailable, and every message is sent again by its own schedule."""
        if not gate.failing:
            gate.failing = True
            self._announce(
                BreakerChanged(relay=self.relay, destination=gate.place.name, state="half-open", error=error)
            )
        self.changed[gate.place.name] = (error, 0.0)
        self.on_doubt(gate.place.transport)

    def _fails_no_more(self, gate: Gate) -> None:
        if gate.failing:
            gate.failing = False
            self.changed[gate.place.name] = ("", 0.0)
            self._announce(BreakerChanged(relay=self.relay, destination=gate.place.name, state="closed"))

    def _shown(self, gate: Gate, now: float) -> str:
        state = gate.state(now)
        return "half-open" if gate.failing and state == "closed" else state

    def rates(self) -> Mapping[str, float]:
        """Messages per second that this relay may send, where there is a limit."""
        shared = max(1, self._relays)
        return {name: gate.rate / shared for name, gate in self._gates.items() if gate.rate is not None}

    def accepted(self, gate: Gate) -> None:
        gate.at_fault = False
        gate.breaker.accepted(self._clock.monotonic())
        self._report(gate, "")
        self._fails_no_more(gate)
        noted = self._wanted.get(gate.place.name)
        if noted is not None and noted.breaker == "closed" and noted.last_error is not None:
            # Another relay noted it, perhaps one that is gone, and no breaker shows that it is over.
            self.changed.setdefault(gate.place.name, ("", 0.0))

    def unavailable(self, gate: Gate, error: str, *, at_fault: bool = False) -> None:
        """It takes nothing now; `at_fault`: which says nothing about other destinations."""
        gate.at_fault = at_fault
        gate.breaker.unavailable(error, self._clock.monotonic(), self._chance)
        self._report(gate, error)
        if not at_fault:
            self.on_doubt(gate.place.transport)

    def rejected(self, gate: Gate, event_ids: Iterable[str], error: str) -> None:
        gate.at_fault = True
        for event_id in event_ids:
            gate.breaker.rejected(event_id, self._clock.monotonic(), self._chance)
        self._report(gate, error)

    def _report(self, gate: Gate, error: str) -> None:
        now = self._clock.monotonic()
        state, fails = gate.breaker.state(now), gate.breaker.fails
        next_try = gate.breaker.next_try(now) if state == "open" or fails else 0.0
        report = (state, fails, round(now + next_try, 3) if next_try else 0.0)
        if report == gate.reported:
            return
        gate.reported = report
        gate.aside = True
        self.changed[gate.place.name] = (error if state == "open" or fails else "", next_try)
        self._announce(
            BreakerChanged(relay=self.relay, destination=gate.place.name, state=state, error=error, next_try=next_try)
        )


def _untouched(destination: str) -> Override:
    return Override(destination, paused=False, breaker=None, rate_limit=None, last_error=None)


def _shut_out(states: Mapping[str, str], others: Iterable[Mapping[str, str]]) -> bool:
    if not states or any(state != "open" for state in states.values()):
        return False
    return any(state == "closed" for theirs in others for name, state in theirs.items() if name in states)


class Connections:
    """The transports of one relay, by name."""

    def __init__(
        self,
        transports: Mapping[str, Transport],
        *,
        relay: str,
        gates: Gates,
        clock: Clock,
        chance: Chance,
        announce: Announcer,
    ) -> None:
        self.relay = relay
        self._gates = gates
        self._clock = clock
        self._chance = chance
        self._announce = announce
        self._transports = dict(transports)
        self._doubted = {name: asyncio.Event() for name in transports}
        self._down_since: dict[str, float] = {}
        self.errors: dict[str, str] = {}
        """Transport → why it cannot be used now."""
        self.waiting = set(transports)
        """Transports that have not been reached since the relay began."""
        self.on_change: Callable[[], None] = lambda: None
        """Told when a transport is back: there may be something to send."""
        gates.on_doubt = self._doubt

    async def watch(self, name: str) -> None:
        """Keep one transport connected, without end."""
        backoff = Backoff(self._chance)
        self.waiting.add(name)
        while True:
            self._doubted[name].clear()
            try:
                await self.check(name)
            except UnavailableError as error:
                delay = backoff.next()
                self.errors[name] = str(error)
                self._down_since.setdefault(name, self._clock.monotonic())
                self._announce(TransportFailed(relay=self.relay, transport=name, error=str(error), delay=delay))
                await self._clock.sleep(delay)
            else:
                backoff.reset()
                self._connected(name)
                await self._doubted[name].wait()

    async def check(self, name: str) -> None:
        """Connect, declare, ask the broker something. Raises UnavailableError, whatever the transport raises."""
        try:
            await self._transports[name].ping()
        except UnavailableError:
            raise
        except Exception as error:
            raise UnavailableError(f"{type(error).__name__}: {error}") from error

    def _connected(self, name: str) -> None:
        self.errors.pop(name, None)
        since = self._down_since.pop(name, None)
        if name in self.waiting or since is not None:
            self.waiting.discard(name)
            outage = 0.0 if since is None else self._clock.monotonic() - since
            self._announce(TransportConnected(relay=self.relay, transport=name, seconds=outage))
        if since is not None:
            self._gates.reconnected(self._transports[name])
            self.on_change()

    def _doubt(self, transport: Transport) -> None:
        for name, known in self._transports.items():
            if known is transport:
                self._doubted[name].set()
