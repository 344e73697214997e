"""Webhooks fulfil the contract of all transports: requests to a real HTTP server that can cut its connections."""

from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from pillarbox.core.transport import Address, Outgoing
from pillarbox.testing.conformance.transports import (
    Arrived,
    TransportCapabilities,
    TransportConformance,
    TransportHarness,
)
from pillarbox.transports.webhook import WebhookAddress, WebhookTransport, event_headers
from tests.integration.webhook.background import Background
from tests.integration.webhook.receiver import Received, Receiver, accepted

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
TOKEN = "Bearer a-token-for-the-receiver-only"


class WebhookHarness(TransportHarness):
    """Addresses are paths; the server accepts all but one, and repeats the headers of that request in its answer."""

    capabilities = TransportCapabilities(ordered=False, routes=True, refuses=True, outages=True)
    secrets = (SECRET, SECRET.removeprefix("whsec_"), TOKEN, TOKEN.removeprefix("Bearer "))

    def __init__(self, background: Background, receiver: Receiver) -> None:
        self._background = background
        self._receiver = receiver
        receiver.answer = self._answer
        self._transport = WebhookTransport(
            receiver.url("/hooks"),
            secrets=[SECRET],
            headers={"Authorization": TOKEN},
            allow_networks=["127.0.0.0/8", "::1/128"],
        )

    @staticmethod
    def _answer(request: Received) -> web.Response:
        if request.path == "/hooks/nowhere":
            return web.Response(status=404, body=f"{request.headers}".encode() + request.body)
        return accepted(request)

    @property
    def transport(self) -> WebhookTransport:
        return self._transport

    def address(self, n: int = 0) -> Address:
        return WebhookTransport.to(f"/{n}")

    def unroutable(self) -> Address:
        return WebhookTransport.to("/nowhere")

    def spoiled(self, good: Outgoing) -> Outgoing:
        return good._replace(content_type="text/plain\r\nHost: elsewhere")

    async def received(self, address: Address) -> list[Arrived]:
        assert isinstance(address, WebhookAddress)
        found = [one for one in self._receiver.requests if one.path == f"/hooks{address.url}"]
        return [
            Arrived(one.event_id, one.body, event_headers(one.headers), one.header("content-type")) for one in found
        ]

    async def cut(self) -> None:
        await self._background.run(self._receiver.aclose())

    async def heal(self) -> None:
        await self._background.run(self._receiver.__aenter__())


class TestWebhook(TransportConformance):
    @pytest.fixture
    async def harness(self) -> AsyncIterator[TransportHarness]:
        async with Background() as background:
            receiver = await background.run(Receiver().__aenter__())
            harness = WebhookHarness(background, receiver)
            yield harness
            await harness.transport.aclose()
            await background.run(receiver.aclose())
