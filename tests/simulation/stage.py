"""A relay on a store in memory, in virtual time: what it does, and when."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from pillarbox import Event, Outbox
from pillarbox.core.observations import Observation
from pillarbox.core.transport import Outgoing
from pillarbox.relay.config import RelayConfig
from pillarbox.relay.relay import Relay
from pillarbox.stores.memory import MemoryStore
from pillarbox.testing.simulation import Simulation
from pillarbox.transports.memory import MemoryTransport

CONFIG = RelayConfig(poll_interval="100ms", lease="10s", heartbeat_interval="1s", send_timeout="5s")


@dataclass
class Stage:
    """A store, and relays that are made for it."""

    simulation: Simulation
    config: RelayConfig = CONFIG
    observed: list[Observation] = field(default_factory=list)
    _found: dict[type[Observation], tuple[int, list[Any]]] = field(default_factory=dict)
    """Per kind: how many observations were searched, and the matches."""

    def __post_init__(self) -> None:
        self.store = MemoryStore(lanes=8, clock=self.simulation.clock)
        self.transport = MemoryTransport(clock=self.simulation.clock)

    @property
    def now(self) -> float:
        return self.simulation.clock.monotonic()

    def relay(self, **options: Any) -> Relay:
        given: dict[str, Any] = {
            "store": self.store,
            "transports": {"memory": self.transport},
            "observers": [self.observed.append],
        }
        config = replace(self.config, **options.pop("tuned", {}))
        return Relay(
            config=config,
            clock=self.simulation.clock,
            rng=self.simulation.rng,
            threaded_heartbeat=False,
            **(given | options),
        )

    @asynccontextmanager
    async def running(self, **options: Any) -> AsyncIterator[Relay]:
        async with self.relay(**options) as relay:
            yield relay

    def record(self, *events: Event) -> None:
        with self.store.transaction() as transaction:
            Outbox().record(transaction, *events)

    async def until(self, fact: Callable[[], bool], *, within: float = 60.0) -> None:
        end = self.now + within
        while not fact():
            assert self.now < end, f"not within {within} s of virtual time"
            await self.simulation.clock.sleep(min(0.5, within / 100))

    async def rest(self, seconds: float) -> None:
        await self.simulation.clock.sleep(seconds)

    def seen(self, kind: type[Observation]) -> list[Any]:
        """Return the observations of a kind so far; search only those that came since the last call."""
        searched, found = self._found.get(kind, (0, []))
        found = found + [one for one in self.observed[searched:] if isinstance(one, kind)]
        self._found[kind] = (len(self.observed), found)
        return found


def ids(deliveries: Sequence[Outgoing]) -> list[str]:
    return [one.message.event_id for one in deliveries]
