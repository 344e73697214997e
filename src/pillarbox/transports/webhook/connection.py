"""Connections to receivers: names are resolved, every address passes the guard, certificates are verified.

Each attempt to connect goes through the guard with the address that its socket connects to, however it was written and
whatever the name resolved to before. `connect` sends nothing: for `ping` and for the doctor.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

from pillarbox.core.errors import UnavailableError
from pillarbox.transports.webhook.guard import AddressGuard, AddressRefusedError
from pillarbox.transports.webhook.plugin import HttpEndpoint

P = TypeVar("P", bound="BaseConnection")
Addresses = Sequence[tuple[Any, ...]]
Resolver = Callable[[str, int], Awaitable[Addresses]]
"""Takes host and port; returns what `getaddrinfo` returns. Raises OSError."""

STAGGER = 0.25
"""Seconds after which the next address of a name is tried beside those before: one that never answers delays little."""
KEPT = 10.0
"""Seconds that the addresses of a name are kept. Each of them passes the guard again for each connection."""


class Connected(NamedTuple):
    """What a connection showed."""

    address: str
    expires: datetime | None
    """When the certificate expires; None without TLS."""


class BaseConnection(asyncio.Protocol):
    """One connection."""

    transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]  # asyncio promises no more than its base class

    def abort(self) -> None:
        """Close it at once."""
        self.transport.abort()


class ConnectFailedError(OSError):
    """No address of a host could be connected to; the text says why."""


async def system_resolver(host: str, port: int) -> Addresses:
    """The addresses of a host, from the system."""
    return await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)


class KeptAddresses:
    """A resolver that keeps each answer for some seconds, and asks once for several connections."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._answers: dict[tuple[str, int], tuple[float, asyncio.Task[Addresses]]] = {}

    async def __call__(self, host: str, port: int) -> Addresses:
        asked, answer = self._answers.get((host, port), (0.0, None))
        now = time.monotonic()
        if answer is None or now - asked > KEPT or (answer.done() and (answer.cancelled() or answer.exception())):
            answer = asyncio.ensure_future(self._resolver(host, port))
            answer.add_done_callback(_seen)
            self._answers[host, port] = now, answer
        return await asyncio.shield(answer)

    def forget(self) -> None:
        self._answers.clear()


def _seen(answer: asyncio.Future[Addresses]) -> None:
    """asyncio reports an error that was not asked for, as of a name whose connections were all cancelled."""
    if not answer.cancelled():
        answer.exception()


class Dialer:
    """Connects to endpoints through the guard."""

    def __init__(self, guard: AddressGuard, tls: ssl.SSLContext, resolver: Resolver = system_resolver) -> None:
        self._guard = guard
        self._tls = tls
        self._resolver = resolver

    async def dial(self, endpoint: HttpEndpoint, protocol: Callable[[], P]) -> P:
        """A connection to the first address that accepts one. Raises ConnectFailedError."""
        try:
            addresses = await self._resolver(endpoint.host, endpoint.port)
        except (OSError, UnicodeError) as error:  # UnicodeError: a name that no name server knows, such as a..b
            raise ConnectFailedError(reason(error)) from None
        failures: list[BaseException] = []
        made = await _first(deque(addresses), lambda info: self._dial(endpoint, info, protocol), failures)
        if made is None:
            raise ConnectFailedError("; ".join(dict.fromkeys(map(reason, failures))) or "it has no address")
        return made

    async def _dial(self, endpoint: HttpEndpoint, info: tuple[Any, ...], protocol: Callable[[], P]) -> P:
        loop = asyncio.get_running_loop()
        made = self._guard.socket_for(info)
        try:
            made.setblocking(False)
            await loop.sock_connect(made, info[4])
            is_https = endpoint.scheme == "https"
            _, connected = await loop.create_connection(
                protocol,
                sock=made,
                ssl=self._tls if is_https else None,
                server_hostname=endpoint.host if is_https else None,
            )
        except BaseException:
            made.close()
            raise
        return connected


async def _first(
    left: deque[tuple[Any, ...]], attempt: Callable[[tuple[Any, ...]], Awaitable[P]], failures: list[BaseException]
) -> P | None:
    """The first attempt that succeeds; another begins when one has failed, or does not answer soon."""
    running: set[asyncio.Future[P]] = set()
    first: P | None = None
    try:
        while left or running:
            if left:
                running.add(asyncio.ensure_future(attempt(left.popleft())))
            done, running = await asyncio.wait(
                running, timeout=STAGGER if left else None, return_when=asyncio.FIRST_COMPLETED
            )
            for one in done:
                if (error := one.exception()) is not None:
                    failures.append(error)
                elif first is None:
                    first = one.result()
                else:
                    one.result().abort()
            if first is not None:
                return first
    finally:
        for one in running:
            one.cancel()
            one.add_done_callback(_abort_late)
    return None


def _abort_late(attempt: asyncio.Future[P]) -> None:
    """Close a connection that was made although its attempt was cancelled."""
    if not attempt.cancelled() and attempt.exception() is None:
        attempt.result().abort()


async def connect(endpoint: HttpEndpoint, guard: AddressGuard, tls: ssl.SSLContext, *, within: float) -> Connected:
    """Connect to the first address that answers, negotiate TLS and close. Raises UnavailableError."""
    try:
        async with asyncio.timeout(within):
            opened = await Dialer(guard, tls).dial(endpoint, BaseConnection)
    except TimeoutError:
        raise UnavailableError(f"{endpoint} cannot be reached: no connection within {within:g} s") from None
    except OSError as error:
        raise UnavailableError(f"{endpoint} cannot be reached: {reason(error)}") from None
    peer, certificate = opened.transport.get_extra_info("peername"), opened.transport.get_extra_info("peercert")
    opened.abort()
    return Connected(str(peer[0]) if peer else "", _expiry(certificate) if endpoint.scheme == "https" else None)


def _expiry(certificate: Any) -> datetime | None:
    with suppress(KeyError, TypeError, ValueError):
        return datetime.fromtimestamp(ssl.cert_time_to_seconds(certificate["notAfter"]), UTC)
    return None


def reason(error: BaseException) -> str:
    """Why a connection failed, without the names of internals."""
    if isinstance(error, (AddressRefusedError, ConnectFailedError)):
        return str(error)
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message or error.reason}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
