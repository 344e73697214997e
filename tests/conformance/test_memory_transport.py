"""The memory transport fulfils the contract of all transports."""

from collections.abc import AsyncIterator

import pytest

from pillarbox.core.errors import PermanentError, RejectedError
from pillarbox.core.transport import Address, Outgoing
from pillarbox.testing.conformance.transports import (
    Arrived,
    TransportCapabilities,
    TransportConformance,
    TransportHarness,
)
from pillarbox.transports.memory import MemoryTransport

NOWHERE = MemoryTransport.to("nowhere")


class MemoryTransportHarness(TransportHarness):
    """Scripted failures: an address without a receiver, and messages that cannot be sent."""

    capabilities = TransportCapabilities(routes=True, refuses=True, outages=True)

    def __init__(self, kind: type[MemoryTransport] = MemoryTransport) -> None:
        self._arrived: list[Outgoing] = []
        self._transport = kind(deliveries=self._arrived)
        self._transport.fail_when(lambda one: one.address == NOWHERE, RejectedError("nowhere has no receiver"))
        self._transport.fail_when(lambda one: one.content_type == "spoiled", PermanentError("it is spoiled"))

    @property
    def transport(self) -> MemoryTransport:
        return self._transport

    def address(self, n: int = 0) -> Address:
        return self._transport.to(f"place {n}")

    async def received(self, address: Address) -> list[Arrived]:
        return [
            Arrived(one.message.event_id, one.body, one.headers, one.content_type)
            for one in self._arrived
            if one.address == address
        ]

    def unroutable(self) -> Address:
        return NOWHERE

    def spoiled(self, good: Outgoing) -> Outgoing:
        return good._replace(content_type="spoiled")

    async def cut(self) -> None:
        self._transport.outage()

    async def heal(self) -> None:
        self._transport.heal()


class TestMemoryTransport(TransportConformance):
    @pytest.fixture
    async def harness(self) -> AsyncIterator[TransportHarness]:
        harness = MemoryTransportHarness()
        yield harness
        await harness.transport.aclose()
