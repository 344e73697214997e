"""Webhooks instead of a broker: each request to a listener is a message, and its response the acknowledgement.

    204   the transaction is committed, or the message is a duplicate
    400   the request is not signed with the secret of the relay
    413   the body is too large
    422   handling failed, or the message can never be handled: the relay counts an attempt, and retries
    503   something else is unavailable: the relay retries without a limit

The relay keeps the counts, and the messages that were rejected to the end are dead letters of its outbox. The signature
covers the id and the body, so everything about an event is read from these.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from socket import socket
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from apps.notifications.domain import Audience
from apps.runtime.port import PortError, open_port, serving_app
from pillarbox import ConfigurationError, UnavailableError, WebhookVerificationError
from pillarbox.adapters import Incoming
from pillarbox.transports.webhook import VerifiedWebhook, WebhookVerifier

SECRETS = "PILLARBOX_TRANSPORTS__BROKER__SECRETS"
"""The secrets with which the relay signs, separated by commas."""
LISTEN = "NOTIFICATIONS_WEBHOOKS"
"""host:port on which listeners receive; default: those of the URL in PILLARBOX_TRANSPORT."""
MAX_BODY = 2 * 1024 * 1024
"""Bytes of the largest body."""
MAX_ATTEMPTS = "10"
"""Rejections of an event before the relay dead-letters it: there is no queue of dead letters on a broker."""


def is_webhook(url: str) -> bool:
    """Whether it is the URL of a web server."""
    return urlsplit(url).scheme in ("http", "https")


def relay_variables(url: str) -> dict[str, str]:
    """What the relay is told besides its settings file."""
    return {"PILLARBOX_RELAY__RETRY__MAX_ATTEMPTS": MAX_ATTEMPTS} if is_webhook(url) else {}


class WebhookDelivery:
    """A request that waits for its response."""

    quarantined = False
    crashes = 0

    def __init__(self, incoming: Incoming, source: WebhookSource) -> None:
        self.incoming = incoming
        self._source = source
        self.response: asyncio.Future[Response] = asyncio.get_running_loop().create_future()

    async def ack(self) -> None:
        self._respond(Response(status_code=204))

    async def retry(self, *, delay: float, reason: str, counted: bool = True) -> None:
        wait = {"Retry-After": str(max(1, round(delay)))}
        self._respond(PlainTextResponse(reason, 422) if counted else PlainTextResponse(reason, 503, wait))

    async def reject(self, reason: str) -> None:
        self._respond(PlainTextResponse(reason, 422))

    def _respond(self, response: Response) -> None:
        if self.response.done():
            raise UnavailableError("the request has its response already; the relay sends the event again")
        self.response.set_result(response)
        self._source.free()


class WebhookSource:
    """The messages of one audience; at most `prefetch` of them are in flight."""

    def __init__(self, *, prefetch: int) -> None:
        self._waiting: asyncio.Queue[WebhookDelivery] = asyncio.Queue()
        self._in_flight: set[WebhookDelivery] = set()
        self._room = asyncio.Semaphore(prefetch)
        self._closed = False

    async def receive(self) -> WebhookDelivery:
        await self._room.acquire()
        try:
            return await self._waiting.get()
        except BaseException:
            self._room.release()
            raise

    async def connect(self) -> None:
        """The server is started by the process."""

    async def aclose(self) -> None:
        self._closed = True
        for delivery in self._in_flight:
            if not delivery.response.done():
                delivery.response.set_result(_stopped())

    def free(self) -> None:
        """A message has its response: the next one may be delivered."""
        self._room.release()

    async def respond_to(self, webhook: VerifiedWebhook, headers: Mapping[str, str], queue: str) -> Response:
        """Deliver a message, and return the response once it is acknowledged."""
        if self._closed:
            return _stopped()
        trace = {name: headers[name] for name in ("traceparent", "tracestate") if name in headers}
        incoming = Incoming(
            event_id=webhook.event_id, event_type=None, body=webhook.body, headers=trace, destination=queue
        )
        delivery = WebhookDelivery(incoming, self)
        self._in_flight.add(delivery)
        self._waiting.put_nowait(delivery)
        try:
            return await delivery.response
        finally:
            self._in_flight.discard(delivery)


def _stopped() -> Response:
    return PlainTextResponse("the listener stops", 503, {"Retry-After": "1"})


class WebhookReceiver:
    """The sources of all audiences of this process behind one port. Raises ConfigurationError."""

    def __init__(self, url: str, *, prefetch: int) -> None:
        secrets = [one for one in os.environ.get(SECRETS, "").split(",") if one]
        if not secrets:
            raise ConfigurationError(f"{SECRETS} is not set; give it what the relay signs with (whsec_…)")
        self._verifier = WebhookVerifier(*secrets)
        self._prefetch = prefetch
        self._sources: dict[str, WebhookSource] = {}
        self._base = urlsplit(url).path.rstrip("/")
        self._port = _open(url)

    def source_of(self, audience: Audience) -> WebhookSource:
        return self._sources.setdefault(audience.queue, WebhookSource(prefetch=self._prefetch))

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Receive while the block runs."""
        routes = [Route(f"{self._base}/{queue}", self._receive, methods=["POST"]) for queue in self._sources]
        async with serving_app(self._port, Starlette(routes=routes)):
            yield

    async def _receive(self, request: Request) -> Response:
        body = await _body_of(request)
        if body is None:
            return PlainTextResponse(f"the body has over {MAX_BODY} bytes", 413)
        try:
            webhook = self._verifier.verify(request.headers, body)
        except WebhookVerificationError as error:
            return PlainTextResponse(str(error), 400)
        queue = request.url.path.rpartition("/")[2]
        return await self._sources[queue].respond_to(webhook, request.headers, queue)


async def _body_of(request: Request) -> bytes | None:
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > MAX_BODY:
            return None
        parts.append(part)
    return b"".join(parts)


def _open(url: str) -> socket:
    parts = urlsplit(url)
    default = f"{parts.hostname}:{parts.port or 80}"
    try:
        port = open_port(LISTEN, default)
    except PortError as error:
        raise ConfigurationError(str(error)) from None
    if port is None:
        raise ConfigurationError(f"nothing can be received on {default}; set {LISTEN} to a free host:port")
    return port
