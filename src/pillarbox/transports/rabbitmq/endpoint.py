"""Where the broker is, from its URL. User and password stay in here: what is shown names host, port and vhost."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from pillarbox.core.errors import ConfigurationError

_PORTS = {"amqp": 5672, "amqps": 5671}


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One broker, one virtual host, one user. Over `amqps` certificate and host name are verified."""

    host: str
    port: int
    vhost: str
    user: str = field(repr=False)
    password: str = field(repr=False)
    tls: ssl.SSLContext | None = field(repr=False, compare=False)

    def __str__(self) -> str:
        return f"{self.host}:{self.port}, virtual host {self.vhost!r}"


def endpoint_of(url: str, tls: ssl.SSLContext | None = None) -> Endpoint:
    """Read `amqp://user:password@host:port/vhost`. Raises ConfigurationError, which never quotes the URL."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ConfigurationError("host or port in the broker's URL cannot be read") from None
    if parts.scheme not in _PORTS:
        raise ConfigurationError("the broker's URL must begin with amqp:// or amqps://, as in amqp://app@mq:5672/%2F")
    if parts.query or parts.fragment:
        raise ConfigurationError("the broker's URL takes no options after the virtual host; pass them as arguments")
    if "@" in parts.path:
        # A / in the password has cut the URL in two: what looks like a virtual host is the password's end.
        raise ConfigurationError("user, password and host in the broker's URL cannot be told apart; write / as %2F")
    vhost = parts.path.removeprefix("/")
    if "/" in vhost:
        raise ConfigurationError("a slash in the virtual host's name is written %2F in the broker's URL")
    if parts.scheme == "amqp" and tls is not None:
        raise ConfigurationError("a TLS context needs a URL that begins with amqps://")
    if parts.scheme == "amqps" and tls is None:
        tls = ssl.create_default_context()
    return Endpoint(
        host=parts.hostname or "localhost",
        port=port or _PORTS[parts.scheme],
        vhost=unquote(vhost) or "/",
        user=unquote(parts.username or "guest"),
        password=unquote(parts.password if parts.password is not None else "" if parts.username else "guest"),
        tls=tls,
    )
