"""Where the requests of one address go, and their bytes."""

from __future__ import annotations

import time
from urllib.parse import urlsplit

from pillarbox.core.transport import Outgoing
from pillarbox.transports.webhook.headers import encoded_id, request_headers
from pillarbox.transports.webhook.plugin import HttpEndpoint, WebhookAddress, WebhookOptions
from pillarbox.transports.webhook.signature import ID, SIGNATURE, TIMESTAMP, signature_header


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
        self._headers = {name.lower(): value for name, value in given}
        values = [part for value in self._headers.values() for part in (value, *value.split(" "))]
        self.secrets = sorted({*values, *address.secrets, *options.secrets}, key=len, reverse=True)
        """Texts that no error may show."""
        own = {"host": self.endpoint.authority, "user-agent": "pillarbox", "accept": "*/*"}
        fields = own | {"accept-encoding": "identity"} | self._headers
        self._common = "".join([f"{name}: {value}\r\n" for name, value in fields.items()])
        self._fixed = self._path(address.url) if address.fixed else None

    def request(self, one: Outgoing) -> bytes:
        """The bytes of a request. Raises PermanentError, and UnicodeEncodeError for a header that is not text."""
        path = self._fixed or self._path(self._address.url_for(one.message))
        body, message_id, timestamp = one.body, encoded_id(one.message.event_id), int(time.time())
        signature = ""
        if self.keys:
            signature = f"{SIGNATURE}: {signature_header(self.keys, message_id, timestamp, body)}\r\n"
        event = "".join(
            [
                f"{name}: {value}\r\n"
                for name, value in request_headers(one.headers).items()
                if name not in self._headers
            ]
        )
        head = (
            f"POST {path} HTTP/1.1\r\n{self._common}Content-Type: {one.content_type}\r\n"
            f"Content-Length: {len(body)}\r\nIdempotency-Key: {message_id}\r\n"
            f"{ID}: {message_id}\r\n{TIMESTAMP}: {timestamp}\r\n{signature}{event}\r\n"
        )
        return head.encode("ascii") + body

    def _path(self, text: str) -> str:
        """The path and query of a URL, as in the first line of a request."""
        parts = urlsplit(text if self._address.is_absolute else self._base.join(text))
        return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
