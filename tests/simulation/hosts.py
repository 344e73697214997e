"""The machine of a simulated relay, which can be killed, frozen, or cut off from the store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from pillarbox.core.errors import StoreUnavailableError, UnavailableError
from pillarbox.core.transport import Outgoing, SendResult
from pillarbox.relay.relay import Relay
from pillarbox.stores.memory import MemoryStore
from pillarbox.testing.simulation import Simulation
from pillarbox.transports.memory import MemoryAddress, MemoryTransport

Identity = tuple[str, str]


def identity(one: Outgoing) -> Identity:
    """What arrived, and where."""
    assert isinstance(one.address, MemoryAddress)
    return one.message.event_id, one.address.name


class Machine:
    """A machine that can be killed, frozen for a while, and cut off from the store."""

    def __init__(self, simulation: Simulation, store_latency: float = 0.0) -> None:
        self.dead = False
        self.cut_off = False
        self._simulation = simulation
        self._store_latency = store_latency
        self._running = asyncio.Event()
        self._running.set()

    def freeze(self) -> None:
        self._running.clear()

    def thaw(self) -> None:
        self._running.set()

    async def step(self) -> None:
        """Every call of the relay to the outside passes here, before and after."""
        await self._running.wait()
        if self.dead:
            raise asyncio.CancelledError

    async def call(self, work: Callable[..., Awaitable[Any]], *arguments: Any, **options: Any) -> Any:
        await self.step()
        result = await work(*arguments, **options)
        await self.step()
        return result

    async def call_store(self, work: Callable[..., Awaitable[Any]], *arguments: Any, **options: Any) -> Any:
        """A call that takes some time, and fails before or after its work while the store is unavailable."""
        await self._cross()
        result = await self.call(work, *arguments, **options)
        await self._cross()
        return result

    async def _cross(self) -> None:
        if self._store_latency:
            await self._simulation.clock.sleep(self._simulation.rng.random() * self._store_latency)
        if self.cut_off and not self.dead:
            raise StoreUnavailableError("the simulated store cannot be reached from this machine")


class _Facet:
    def __init__(self, inner: Any, machine: Machine) -> None:
        self._inner = inner
        self._machine = machine

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        return partial(self._machine.call_store, value) if callable(value) else value


class MachineStore:
    """The store as a relay on that machine sees it."""

    FACETS = ("lanes", "messages", "writes", "pruning", "wakeup", "schema", "destinations", "ledger")

    def __init__(self, inner: MemoryStore, machine: Machine) -> None:
        self._inner = inner
        self._machine = machine

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        return _Facet(value, self._machine) if name in self.FACETS and value is not None else value


class MachineTransport(MemoryTransport):
    """The transport as a relay on that machine uses it."""

    machine: Machine
    on_send: Callable[[], None] = staticmethod(lambda: None)
    """Called when a relay begins a send."""
    loses: Callable[[int], tuple[int, int] | None] = staticmethod(lambda _: None)
    """Called with the size of each batch; returns how many messages arrive before the connection is lost, and how many
    of those are confirmed; None: it is not lost.
    """
    on_arrival: Callable[[Sequence[Outgoing], Sequence[SendResult]], None] = staticmethod(lambda _, __: None)
    """Called with the result of each batch where it arrived, also if the relay does not receive it."""

    async def send(self, batch: Sequence[Outgoing]) -> list[SendResult]:
        self.on_send()
        lost = self.loses(len(batch))
        arrive, confirmed = (len(batch), len(batch)) if lost is None else lost
        answers: list[SendResult] = await self.machine.call(super().send, batch[:arrive])
        cut_off: list[SendResult] = [UnavailableError("the simulated connection was lost")] * (len(batch) - confirmed)
        return answers[:confirmed] + cut_off

    def _arrive_together(self, batch: Sequence[Outgoing]) -> list[SendResult]:
        answers = super()._arrive_together(batch)
        self.on_arrival(batch, answers)
        return answers


@dataclass(eq=False)
class Process:
    """A relay and its machine."""

    relay: Relay
    machine: Machine
    transport: MachineTransport
    task: asyncio.Task[None]

    async def kill(self) -> None:
        """Kill it, as SIGKILL does: nothing that it does from now on has an effect outside."""
        self.machine.dead = True
        self.machine.thaw()
        self.transport.outage()
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task

    async def stop(self) -> None:
        self.machine.thaw()
        self.relay.stop()
        await self.task
