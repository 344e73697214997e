"""Whether each transport can reach its broker: asked at the start, and whenever a destination was unavailable.

A transport connects when it is pinged and declares its topology then: so a relay declares it at its start and after
every outage, not with the first event. While the broker cannot be reached, the relay says so and tries again; as soon
as it can, the breakers of the transport's destinations close, whether or not an event is waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from pillarbox.core.clock import Chance, Clock
from pillarbox.core.errors import Unavailable
from pillarbox.core.observations import Announcer, TransportConnected, TransportFailed
from pillarbox.core.retry import Backoff
from pillarbox.core.transport import Transport
from pillarbox.relay.gates import Gates


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
            except Unavailable as error:
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
        """Connect, declare, ask the broker something. Raises Unavailable, whatever the transport raises."""
        try:
            await self._transports[name].ping()
        except Unavailable:
            raise
        except Exception as error:
            raise Unavailable(f"{type(error).__name__}: {error}") from error

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
