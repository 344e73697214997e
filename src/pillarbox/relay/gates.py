"""The gate of each destination on this relay: its breaker, its rate, and what people set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pillarbox.core.clock import Chance, Clock
from pillarbox.core.observations import Announcer, BreakerChanged, DestinationSteered
from pillarbox.core.steering import EVERYWHERE, Steering
from pillarbox.relay.middleware.circuit_breaker import CircuitBreaker
from pillarbox.relay.middleware.rate_limit import RateLimit
from pillarbox.relay.routing import Place, per_second

A_LOT = 1_000_000
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
    reported: tuple[str, bool, float] = _WELL
    """The last state that was announced, whether it fails all the same, and until when: late answers of one outage
    open nothing anew."""

    @property
    def well(self) -> bool:
        """As far as was announced."""
        return self.reported == _WELL

    def may_send(self, now: float) -> int:
        allowed = self.breaker.may_send(now)
        return min(allowed, self.limit.may_send(now)) if self.limit is not None else allowed

    def sent(self, count: int, now: float) -> None:
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
        if self.breaker.may_send(now) == 0:
            return self.breaker.next_try(now)
        return self.limit.wait(now) if self.limit is not None else 0.0


class Gates:
    """One gate per destination, made when it is first met."""

    def __init__(self, *, relay: str, clock: Clock, chance: Chance, announce: Announcer) -> None:
        self.relay = relay
        self._clock = clock
        self._chance = chance
        self._announce = announce
        self._gates: dict[str, Gate] = {}
        self._wanted: dict[str, Steering] = {}
        self._relays = 1
        self.changed: dict[str, tuple[str, float]] = {}
        """Destinations whose breaker changed: error and seconds to the next try, for the store to show."""

    def of(self, place: Place) -> Gate:
        gate = self._gates.get(place.name)
        if gate is None:
            gate = self._gates[place.name] = Gate(place, CircuitBreaker(), aside=True)
            self._steer(gate)
        return gate

    def __iter__(self) -> Iterator[Gate]:
        return iter(list(self._gates.values()))

    def look_aside(self) -> None:
        """Somebody else may have put messages aside: look for them, whatever this relay remembers."""
        for gate in self:
            gate.aside = True

    def any_open(self, *, but: str = "") -> bool:
        """Whether any destination met so far, `but` for one, takes anything now; before the first one is met, yes."""
        now = self._clock.monotonic()
        others = [gate for gate in self if gate.place.name != but]
        return not self._gates or any(gate.may_send(now) > 0 for gate in others)

    def shut(self) -> list[str]:
        """Destinations that a person closed: nothing goes there, however long one waits."""
        return [name for name, gate in self._gates.items() if gate.breaker.paused or gate.breaker.forced == "open"]

    def wait(self) -> float:
        """Seconds until the first closed gate may open."""
        now = self._clock.monotonic()
        waits = [gate.wait(now) for gate in self if gate.may_send(now) == 0]
        return min(waits, default=3600.0)

    def steer(self, steering: Iterable[Steering], *, relays: int) -> None:
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

    def _tell(self, name: str, before: Steering, now: Steering) -> None:
        if now._replace(last_error=None) != before._replace(last_error=None):
            self._announce(
                DestinationSteered(
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
        return {name: gate.breaker.state(now) for name, gate in self._gates.items()}

    def rates(self) -> Mapping[str, float]:
        """Messages per second that this relay may send, where there is a limit."""
        shared = max(1, self._relays)
        return {name: gate.rate / shared for name, gate in self._gates.items() if gate.rate is not None}

    def accepted(self, gate: Gate) -> None:
        gate.breaker.accepted(self._clock.monotonic())
        self._report(gate, "")
        noted = self._wanted.get(gate.place.name)
        if noted is not None and noted.breaker == "closed" and noted.last_error is not None:
            # Another relay noted it, perhaps one that is gone, and no breaker shows that it is over.
            self.changed.setdefault(gate.place.name, ("", 0.0))

    def unavailable(self, gate: Gate, error: str) -> None:
        gate.breaker.unavailable(error, self._clock.monotonic(), self._chance)
        self._report(gate, error)

    def rejected(self, gate: Gate, event_ids: Iterable[str], error: str) -> None:
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


def _untouched(destination: str) -> Steering:
    return Steering(destination, paused=False, breaker=None, rate_limit=None, last_error=None)


def _shut_out(states: Mapping[str, str], others: Iterable[Mapping[str, str]]) -> bool:
    if not states or any(state != "open" for state in states.values()):
        return False
    return any(state == "closed" for theirs in others for name, state in theirs.items() if name in states)
