"""Where the requests of one address go, and what is read of their responses."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from pillarbox.core.transport import Outgoing
from pillarbox.transports.webhook.connection import reason
from pillarbox.transports.webhook.driver import URL, ClientError, ClientResponse
from pillarbox.transports.webhook.plugin import HttpEndpoint, WebhookAddress, WebhookOptions
from pillarbox.transports.webhook.responses import EXCERPT_BYTES

DRAIN_SECONDS = 1.0
"""Seconds that the rest of a response may take; then its connection is closed."""


class Target:
    """Where the requests of one address go, and what all of them have in common."""

    def __init__(
        self, address: WebhookAddress, base: HttpEndpoint, options: WebhookOptions, keys: tuple[bytes, ...]
    ) -> None:
        self._address = address
        self._base = base
        self.endpoint = HttpEndpoint.parse(address.url) if address.is_absolute else base
        self.keys = address.keys or keys
        given = (*options.headers.items(), *address.headers.items())
        self.headers = {name.lower(): value for name, value in given}
        values = [part for value in self.headers.values() for part in (value, *value.split(" "))]
        self.secrets = sorted({*values, *address.secrets, *options.secrets}, key=len, reverse=True)
        """Texts that no error may show."""
        self._fixed = self._url(address.url) if address.fixed else None

    def url_for(self, one: Outgoing) -> URL:
        """Raises PermanentError."""
        return self._fixed or self._url(self._address.url_for(one.message))

    def _url(self, text: str) -> URL:
        return URL(text if self._address.is_absolute else self._base.join(text), encoded=True)


async def finish(response: ClientResponse) -> None:
    """Read the rest of a response, so that its connection can be used again; close it if there is much more."""
    if not response.content.at_eof():
        await beginning(response)


async def beginning(response: ClientResponse) -> bytes:
    """At most `EXCERPT_BYTES` of a response, as far as they arrive soon."""
    read = bytearray()
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            while len(read) < EXCERPT_BYTES and (part := await response.content.readany()):
                read += part
    except (ClientError, OSError):  # among them TimeoutError
        pass
    if not response.content.at_eof():
        response.close()
    return bytes(read[:EXCERPT_BYTES])


_TEXTS: Mapping[str, str] = {
    "ServerDisconnectedError": "the connection was closed before the response",
    "ClientPayloadError": "the connection was lost during the response",
    "ClientResponseError": "the response is not valid HTTP",
}


def failure(error: BaseException) -> str:
    """Why a request failed. The texts of aiohttp may contain the URL, so that only those of the system are shown."""
    inner = getattr(error, "os_error", None) or getattr(error, "certificate_error", None)
    if isinstance(inner, BaseException):
        return reason(inner)
    if isinstance(error, OSError) and error.strerror:
        return reason(error)
    name = type(error).__name__
    return _TEXTS.get(name, name)
