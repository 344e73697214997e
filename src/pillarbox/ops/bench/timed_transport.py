"""A transport that records when each message was confirmed, for benchmarks."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from pillarbox.core.transport import Address, Outgoing, Pace, SendResult, Transport


class TimedTransport:
    """Sends with another transport; records the time of each confirm, and keeps the largest batch to send it again."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.confirmed: dict[str, float] = {}
        """Event id → monotonic time of its confirm."""
        self.largest_batch: Sequence[Outgoing] = ()

    @property
    def pace(self) -> Pace:
        return self._transport.pace

    @property
    def address_type(self) -> type[Address]:
        return self._transport.address_type

    def defaults(self, event_type: str) -> Mapping[str, Address]:
        return self._transport.defaults(event_type)

    async def send(self, batch: Sequence[Outgoing]) -> list[SendResult]:
        results = await self._transport.send(batch)
        now = time.monotonic()
        for one, result in zip(batch, results, strict=True):
            if result is None:
                self.confirmed[one.message.event_id] = now
        if len(batch) > len(self.largest_batch):
            self.largest_batch = list(batch)
        return results

    async def ping(self) -> None:
        await self._transport.ping()

    async def aclose(self) -> None:
        await self._transport.aclose()
