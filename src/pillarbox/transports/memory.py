"""A transport that keeps everything, and fails on command: for tests and simulations.

No threads and no time but the clock's. A message arrives half of the latency after it was sent, its answer comes back
the other half later; an outage or a cancellation in between leaves a message that arrived and was never confirmed, as a
network does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pillarbox.core.clock import Clock, Duration, SystemClock, seconds
from pillarbox.core.errors import SendError, UnavailableError
from pillarbox.core.transport import Address, Outgoing, Pace, Result

Rule = Callable[[Outgoing], Result]
"""Says how a message fails; None lets it pass to the next rule."""
Latency = Duration | Callable[[], float]
"""A constant, or a function that gives seconds: draw them from the simulation's chance."""


_CLOSED = "memory transport: it is closed; make a new one"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryAddress(Address):
    """A list with a name."""

    name: str


class Gate:
    """Holds answers back while it is closed; what they answer has arrived already."""

    def __init__(self) -> None:
        self._closed = False
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def held(self) -> int:
        """How many sends wait here."""
        return len(self._waiting)

    def close(self) -> None:
        """Hold back every answer from now on."""
        self._closed = True

    def open(self) -> None:
        """Let everything through again."""
        self._closed = False
        self.let_through()

    def let_through(self) -> None:
        """Let those through that wait now; the next are held as before."""
        for future in self._waiting:
            if not future.done():
                future.set_result(None)

    async def passed(self) -> None:
        """Returns once the gate is open, or once somebody lets this one through."""
        if not self._closed:
            return
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        try:
            await future
        finally:
            self._waiting.remove(future)


class MemoryTransport:
    """See `pillarbox.core.transport.Transport`. `deliveries` has what arrived, in the order of arrival; several
    transports, each of a relay of its own, may share the list."""

    address_type = MemoryAddress

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        latency: Latency = 0,
        pace: Pace | None = None,
        deliveries: list[Outgoing] | None = None,
    ) -> None:
        self.pace = pace or Pace(in_order=True)
        self.deliveries = [] if deliveries is None else deliveries
        self.gate = Gate()
        self._clock = clock or SystemClock()
        self._latency = latency if callable(latency) else _always(seconds(latency, field="latency"))
        self._next: list[SendError] = []
        self._rules: list[Rule] = []
        self._outage: UnavailableError | None = None
        self._breaks: list[UnavailableError] = []
        self._closed = False

    @staticmethod
    def to(name: str) -> MemoryAddress:
        """The address of the list with that name; it exists as soon as something arrives."""
        return MemoryAddress(name=name)

    def delivered(self, name: str) -> list[Outgoing]:
        """What arrived under that name, in the order of arrival."""
        return [one for one in self.deliveries if isinstance(one.address, MemoryAddress) and one.address.name == name]

    def fail_next(self, error: SendError, *, times: int = 1) -> None:
        """Answer the next messages with this error, before any rule is asked."""
        self._next += [error] * times

    def fail_when(self, predicate: Callable[[Outgoing], bool], error: SendError) -> None:
        """Answer every message the predicate is true for with this error."""
        self.script(lambda one: error if predicate(one) else None)

    def script(self, rule: Rule) -> None:
        """Answer every message with what the rule says; of several rules, the first that says something."""
        self._rules.append(rule)

    def succeed(self) -> None:
        """Forget every scripted failure; an outage goes on."""
        self._next.clear()
        self._rules.clear()

    def outage(self, error: UnavailableError | None = None) -> None:
        """Cut the way, until `heal`: nothing arrives, and what is on its way back is lost too."""
        self._outage = error or UnavailableError("memory transport: cut off by outage(); call heal()")
        self._break_with(self._outage)

    def heal(self) -> None:
        """Open the way again; scripted failures go on."""
        self._outage = None

    def defaults(self, event_type: str) -> Mapping[str, Address]:
        """A list for each type, named after it."""
        return {event_type: self.to(event_type)}

    async def send(self, batch: Sequence[Outgoing]) -> list[Result]:
        if self._closed:
            raise UnavailableError(_CLOSED)
        breaks, latency = len(self._breaks), self._latency()
        await self._clock.sleep(latency / 2)
        answers = self._arrive_together(batch)
        await self.gate.passed()
        await self._clock.sleep(latency / 2)
        if len(self._breaks) > breaks:
            return [answer or self._breaks[-1] for answer in answers]
        return answers

    async def ping(self) -> None:
        if self._closed:
            raise UnavailableError(_CLOSED)
        if self._outage is not None:
            raise self._outage.with_traceback(None)

    async def aclose(self) -> None:
        self._closed = True
        self._break_with(UnavailableError(_CLOSED))

    def _break_with(self, error: UnavailableError) -> None:
        self._breaks.append(error)
        self.gate.let_through()

    def _arrive_together(self, batch: Sequence[Outgoing]) -> list[Result]:
        return [self._arrive(one) for one in batch]

    def _arrive(self, one: Outgoing) -> Result:
        if self._closed or self._outage is not None:
            return self._outage or UnavailableError(_CLOSED)
        if self._next:
            return self._next.pop(0)
        for rule in self._rules:
            if (error := rule(one)) is not None:
                return error
        self.deliveries.append(one)
        return None


def _always(number: float) -> Callable[[], float]:
    return lambda: number
