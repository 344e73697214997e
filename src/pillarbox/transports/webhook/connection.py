"""Connections that send nothing: for `ping` and for the doctor. They go through the guard and verify certificates as
requests do."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple

from pillarbox.core.errors import UnavailableError
from pillarbox.transports.webhook.guard import AddressGuard, AddressRefusedError
from pillarbox.transports.webhook.plugin import HttpEndpoint


class Connected(NamedTuple):
    """What a connection showed."""

    address: str
    expires: datetime | None
    """When the certificate expires; None without TLS."""


async def _resolve(endpoint: HttpEndpoint) -> Sequence[Any]:
    """The addresses of the host, as `getaddrinfo` returns them. Raises UnavailableError."""
    try:
        return await asyncio.get_running_loop().getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise UnavailableError(f"{endpoint}: its host cannot be resolved: {reason(error)}") from None


async def connect(endpoint: HttpEndpoint, guard: AddressGuard, tls: ssl.SSLContext, *, within: float) -> Connected:
    """Connect to the first address that answers, negotiate TLS and close. Raises UnavailableError."""
    try:
        async with asyncio.timeout(within):
            failures: list[str] = []
            for info in await _resolve(endpoint):
                try:
                    return await _connect(endpoint, info, guard, tls)
                except (OSError, ssl.SSLError) as error:
                    failures.append(reason(error))
    except TimeoutError:
        raise UnavailableError(f"{endpoint} cannot be reached: no connection within {within:g} s") from None
    raise UnavailableError(f"{endpoint} cannot be reached: {'; '.join(dict.fromkeys(failures)) or 'no address'}")


async def _connect(endpoint: HttpEndpoint, info: Any, guard: AddressGuard, tls: ssl.SSLContext) -> Connected:
    loop = asyncio.get_running_loop()
    made = guard.socket_for(info)
    try:
        made.setblocking(False)
        await loop.sock_connect(made, info[4])
        is_https = endpoint.scheme == "https"
        transport, _ = await loop.create_connection(
            asyncio.Protocol,
            sock=made,
            ssl=tls if is_https else None,
            server_hostname=endpoint.host if is_https else None,
        )
    except BaseException:
        made.close()
        raise
    try:
        certificate = transport.get_extra_info("peercert")
        return Connected(str(info[4][0]), _expiry(certificate) if is_https else None)
    finally:
        transport.abort()


def _expiry(certificate: Any) -> datetime | None:
    with suppress(KeyError, TypeError, ValueError):
        return datetime.fromtimestamp(ssl.cert_time_to_seconds(certificate["notAfter"]), UTC)
    return None


def reason(error: BaseException) -> str:
    """Why a connection failed, without the names of the client's internals."""
    if isinstance(error, AddressRefusedError):
        return str(error)
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message or error.reason}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
