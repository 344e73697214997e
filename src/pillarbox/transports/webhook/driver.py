"""aiohttp's names that the transport uses. The only module that imports aiohttp."""

from __future__ import annotations

try:
    from aiohttp import (
        ClientError,
        ClientResponse,
        ClientSession,
        ClientTimeout,
        ConnectionTimeoutError,
        DummyCookieJar,
        ServerTimeoutError,
        TCPConnector,
        ThreadedResolver,
    )
    from aiohttp.abc import AbstractResolver
    from yarl import URL
except ImportError as missing:  # pragma: no cover - shown by the test of the bare wheel
    raise ImportError('webhooks need aiohttp: pip install "pillarbox[webhook]"') from missing

__all__ = [
    "URL",
    "AbstractResolver",
    "ClientError",
    "ClientResponse",
    "ClientSession",
    "ClientTimeout",
    "ConnectionTimeoutError",
    "DummyCookieJar",
    "ServerTimeoutError",
    "TCPConnector",
    "ThreadedResolver",
]
