"""A transport that keeps all messages in memory and fails on command: for tests and simulations.

It uses no threads and only the injected clock. A message arrives after half of the latency, and its result after the
other half. An outage or a cancellation in between leaves a message that arrived and was never confirmed, as a network
does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pillarbox.core.clock import Clock, Duration, SystemClock, seconds
from pillarbox.core.errors import SendError, UnavailableError
from pillarbox.core.transport import Address, Outgoing, Pace, SendResult, Transport
from pillarbox.plugins import TransportDiagnosis, TransportPlugin

Rule = Callable[[Outgoing], SendResult]
"""Returns the error of a message; None: the next rule decides."""
Latency = Duration | Callable[[], float]
"""A constant, or a function that returns seconds, for example random ones."""


_CLOSED = "memory transport: it is closed; create a new one"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryAddress(Address):
    """A list of messages, by its name."""

    name: str


class ResultLatch:
    """Delays the results of sends while it is closed; the messages themselves have arrived."""

    def __init__(self) -> None:
        self._closed = False
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def held(self) -> int:
        """How many sends wait for their results."""
        return len(self._waiting)

    def close(self) -> None:
        """Delay every result from now on."""
        self._closed = True

    def open(self) -> None:
        """Return all results, also later ones."""
        self._closed = False
        self.release()

    def release(self) -> None:
        """Return the results that wait now; later ones are delayed as before."""
        for future in self._waiting:
            if not future.done():
                future.set_result(None)

    async def passed(self) -> None:
        """Wait until the latch is open or releases this send."""
        if not self._closed:
            return
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        try:
            await future
        finally:
            self._waiting.remove(future)


class MemoryTransport:
    """See `pillarbox.core.transport.Transport`. `deliveries` contains the messages in the order of arrival; several
    transports, each of another relay, may share the list."""

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
        self.latch = ResultLatch()
        self._clock = clock or SystemClock()
        self._latency = latency if callable(latency) else _always(seconds(latency, field="latency"))
        self._next: list[SendError] = []
        self._rules: list[Rule] = []
        self._outage: UnavailableError | None = None
        self._breaks: list[UnavailableError] = []
        self._closed = False

    @staticmethod
    def to(name: str) -> MemoryAddress:
        """The address of the list with this name."""
        return MemoryAddress(name=name)

    def delivered(self, name: str) -> list[Outgoing]:
        """The messages that arrived under this name, in the order of arrival."""
        return [one for one in self.deliveries if isinstance(one.address, MemoryAddress) and one.address.name == name]

    def fail_next(self, error: SendError, *, times: int = 1) -> None:
        """Fail the next messages with this error, before any rule applies."""
        self._next += [error] * times

    def fail_when(self, predicate: Callable[[Outgoing], bool], error: SendError) -> None:
        """Fail every message for which the predicate is true."""
        self.script(lambda one: error if predicate(one) else None)

    def script(self, rule: Rule) -> None:
        """Fail messages by a rule; of several rules, the first that returns an error applies."""
        self._rules.append(rule)

    def succeed(self) -> None:
        """Remove all scripted failures; an outage continues."""
        self._next.clear()
        self._rules.clear()

    def outage(self, error: UnavailableError | None = None) -> None:
        """Simulate an outage until `heal`: no message arrives, and results on their way back are lost."""
        self._outage = error or UnavailableError("memory transport: outage() simulates an outage; call heal()")
        self._break_with(self._outage)

    def heal(self) -> None:
        """End the outage; scripted failures continue."""
        self._outage = None

    def defaults(self, event_type: str) -> Mapping[str, Address]:
        """A list for each type, named after it."""
        return {event_type: self.to(event_type)}

    async def send(self, batch: Sequence[Outgoing]) -> list[SendResult]:
        if self._closed:
            raise UnavailableError(_CLOSED)
        breaks, latency = len(self._breaks), self._latency()
        await self._clock.sleep(latency / 2)
        results = self._arrive_together(batch)
        await self.latch.passed()
        await self._clock.sleep(latency / 2)
        if len(self._breaks) > breaks:
            return [result or self._breaks[-1] for result in results]
        return results

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
        self.latch.release()

    def _arrive_together(self, batch: Sequence[Outgoing]) -> list[SendResult]:
        return [self._arrive(one) for one in batch]

    def _arrive(self, one: Outgoing) -> SendResult:
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


class MemoryTransportPlugin(TransportPlugin):
    """`memory://`."""

    kind = "memory"
    default_routing = "each event to a list in this process"
    pipelined = True

    def open(self, url: str, options: Mapping[str, Any]) -> Transport:
        return MemoryTransport()

    def address(self, destination: str, options: Mapping[str, Any]) -> Address:
        return MemoryAddress(name=destination)

    def target(self, name: str) -> Address:
        return MemoryAddress(name=name)

    def diagnosis(
        self, url: str, options: Mapping[str, Any], addresses: Mapping[str, Address]
    ) -> TransportDiagnosis | None:
        return None
