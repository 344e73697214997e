"""Handlers fulfil the contract of all transports, async and sync."""

from collections import defaultdict
from collections.abc import AsyncIterator

import pytest

from pillarbox.core.transport import Address, Outgoing
from pillarbox.testing.conformance.transports import (
    Arrived,
    TransportCapabilities,
    TransportConformance,
    TransportHarness,
)
from pillarbox.transports.handlers import HandlerContext, Handlers, ReceivedEvent


class HandlersHarness(TransportHarness):
    """Handlers that record their calls, unless the payload cannot be decoded."""

    capabilities = TransportCapabilities(ordered=False, routes=True, refuses=True)

    def __init__(self, *, is_async: bool) -> None:
        self._transport = Handlers()
        self._calls: dict[Address, list[Arrived]] = defaultdict(list)
        for n in range(10):
            self._add(n, is_async)

    def _add(self, n: int, is_async: bool) -> None:
        calls = self._calls[self.address(n)]

        def note(event: ReceivedEvent, context: HandlerContext) -> None:
            assert event.payload is not None
            calls.append(Arrived(event.event_id, event.payload_bytes, context.headers, event.content_type))

        async def anote(event: ReceivedEvent, context: HandlerContext) -> None:
            note(event, context)

        self._transport.on("*", name=f"place {n}")(anote if is_async else note)

    @property
    def transport(self) -> Handlers:
        return self._transport

    def address(self, n: int = 0) -> Address:
        return self._transport.to(f"place {n}")

    async def received(self, address: Address) -> list[Arrived]:
        return self._calls[address]

    def unroutable(self) -> Address:
        return self._transport.to("a handler of the next release")

    def spoiled(self, good: Outgoing) -> Outgoing:
        return good._replace(body=b"{", content_type="application/json")


class TestAsyncHandlers(TransportConformance):
    @pytest.fixture
    async def harness(self) -> AsyncIterator[TransportHarness]:
        harness = HandlersHarness(is_async=True)
        yield harness
        await harness.transport.aclose()


class TestSyncHandlers(TransportConformance):
    @pytest.fixture
    async def harness(self) -> AsyncIterator[TransportHarness]:
        harness = HandlersHarness(is_async=False)
        yield harness
        await harness.transport.aclose()
