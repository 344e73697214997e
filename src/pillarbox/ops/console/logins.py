"""Logins: each identifies the user of a request.

NoLogin     no login, for this machine only
UserLogin   names and hashed passwords of a file or a variable, with a login page
ProxyLogin  a header that a proxy sets, accepted from its addresses only
HostLogin   a function of the application that mounts the console
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from starlette.requests import Request

from pillarbox.core.clock import Clock, SystemClock
from pillarbox.core.errors import ConfigurationError
from pillarbox.ops.console import passwords
from pillarbox.ops.console.access import Role, User, parse_rights
from pillarbox.ops.console.addresses import client_of, is_within, network, peer_of
from pillarbox.ops.console.sessions import SESSION, LoginSession, Signer, mark_of, open_session
from pillarbox.ops.console.throttle import Throttle
from pillarbox.ops.console.users import Users, read

_log = logging.getLogger("pillarbox.console")

MAX_WAITING = 10
"""Attempts of one address with many failures that may wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticatedUser:
    """An authenticated user."""

    user: User
    holder: str
    """The holder to which form tokens are bound."""
    by_session: bool = False
    """`holder` is the number of a session, which may have ended by logout."""
    by_header: bool = False
    """The request has the password. A browser may have cached it, so that it does not prove an intent."""


class Login(Protocol):
    """Identifies the user of a request; page: the console has a login page."""

    page: bool

    async def authenticate(self, request: Request, signer: Signer) -> AuthenticatedUser | None: ...


class NoLogin:
    """Every request is from the same user, with all rights."""

    page = False

    def __init__(self, name: str) -> None:
        self._identity = AuthenticatedUser(user=User(name=name, role=Role.ADMIN, payloads=True), holder="")

    async def authenticate(self, request: Request, signer: Signer) -> AuthenticatedUser | None:
        return self._identity


class UsersFile:
    """The users of a file; a change of the file applies to the next request."""

    def __init__(self, file: Path) -> None:
        """Raises ConfigurationError."""
        self._file = file
        self._stamp, self._users = self._file_stamp(), read(file)

    def __call__(self) -> Users:
        """Return the users. Raises UsersUnavailableError if the file has become unreadable: then no user can log in."""
        if (stamp := self._file_stamp()) != self._stamp:
            try:
                self._stamp, self._users = stamp, read(self._file)
            except ConfigurationError as error:
                # The path is logged, and not shown to clients.
                _log.error("%s", error)
                raise UsersUnavailableError from None
        return self._users

    def _file_stamp(self) -> tuple[int, int]:
        try:
            found = self._file.stat()
        except OSError:
            return 0, 0
        return found.st_mtime_ns, found.st_ino


class UserLogin:
    """Names and passwords: on the login page, or in each request to the API as HTTP Basic."""

    page = True

    def __init__(self, users: Callable[[], Users], *, proxies: Sequence[str] = (), clock: Clock | None = None) -> None:
        """proxies: addresses whose `X-Forwarded-For` is trusted. Raises ConfigurationError without users."""
        if not users():
            raise ConfigurationError("there are no users: add one with `pillarbox console user add NAME --role admin`")
        self._users = users
        self._clock = clock or SystemClock()
        self._throttle = Throttle(clock=self._clock)
        self._proxies = [network(address) for address in proxies]
        self._hashing = asyncio.Semaphore(2)  # each takes 16 MiB
        self._queues: dict[str, _Queue] = {}
        self._unknown_user_hash = passwords.hashed("")

    async def authenticate(self, request: Request, signer: Signer) -> AuthenticatedUser | None:
        if (credentials := _basic(request)) is not None:
            user = await self.check(*credentials, address=self.address(request))
            return None if user is None else AuthenticatedUser(user=user, holder=user.name, by_header=True)
        session = open_session(signer, request.cookies.get(SESSION))
        entry = None if session is None else self._users().get(session.name)
        if session is None or entry is None or mark_of(entry.hash) != session.mark:
            return None
        return AuthenticatedUser(user=entry.user, holder=session.number, by_session=True)

    def address(self, request: Request) -> str:
        """Return the address whose failures are counted together."""
        return client_of(request, self._proxies)

    async def check(self, name: str, password: str, *, address: str) -> User | None:
        """Return the user of this name and password; None if they are wrong. Raises TooManyAttemptsError."""
        # One attempt at a time per address, so that guessing does not delay other addresses, and concurrent guesses are
        # counted like sequential ones.
        queue = self._queues.setdefault(address, _Queue())
        queue.waiting += 1
        try:
            if queue.waiting > MAX_WAITING and self._throttle.is_guessing(address):
                raise TooManyAttemptsError
            async with queue.turn:
                return await self._check_password(name, password, address=address)
        finally:
            queue.waiting -= 1
            if not queue.waiting:
                self._queues.pop(address, None)

    async def _check_password(self, name: str, password: str, *, address: str) -> User | None:
        entry = self._users().get(name)
        if self._throttle.is_locked(address=address, name=name):
            raise TooManyAttemptsError
        await self._clock.sleep(self._throttle.delay(address=address, name=name))
        async with self._hashing:
            # An unknown name takes as long as a known one.
            correct = await asyncio.to_thread(
                passwords.matches, password, entry.hash if entry else self._unknown_user_hash
            )
        if entry is None or not correct:
            self._throttle.add_failure(address=address, name=name)
            return None
        self._throttle.reset(address=address, name=name)
        return entry.user

    def begin(self, user: User) -> LoginSession:
        return LoginSession.begin(user.name, self._users()[user.name].hash)


@dataclass(slots=True)
class _Queue:
    """Attempts from one address."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: int = 0


class TooManyAttemptsError(Exception):
    """Too many wrong passwords."""


class UsersUnavailableError(Exception):
    """The users cannot be read."""


class ProxyLogin:
    """Users that a proxy has authenticated; headers from other addresses are ignored."""

    page = False

    def __init__(
        self, *, addresses: Sequence[str], user_header: str, role_header: str = "", role: str = "viewer"
    ) -> None:
        """role: for users without a role header, such as `operator+payloads`. Raises ConfigurationError."""
        self._networks = [network(address) for address in addresses]
        if not self._networks:
            raise ConfigurationError("a login by proxy needs the addresses of that proxy: console.proxy_addresses")
        self._user_header, self._role_header = user_header, role_header
        self._rights = parse_rights(role)

    async def authenticate(self, request: Request, signer: Signer) -> AuthenticatedUser | None:
        name = _text(request.headers.get(self._user_header, ""))
        if not name or not is_within(self._networks, peer_of(request)):
            return None
        given = request.headers.get(self._role_header, "") if self._role_header else ""
        try:
            role, payloads = parse_rights(given) if given else self._rights
        except ConfigurationError:
            return None
        return AuthenticatedUser(user=User(name=name[:64], role=role, payloads=payloads), holder=name)


Authenticate = Callable[[Request], User | Awaitable[User | None] | None]


class HostLogin:
    """Users that the application has authenticated: its function gets the request and returns a user or None."""

    page = False

    def __init__(self, authenticate: Authenticate) -> None:
        self._authenticate = authenticate

    async def authenticate(self, request: Request, signer: Signer) -> AuthenticatedUser | None:
        answer = self._authenticate(request)
        user = await answer if inspect.isawaitable(answer) else answer
        return None if user is None else AuthenticatedUser(user=user, holder=user.name)


def _text(header: str) -> str:
    """Decode a header: proxies write names in UTF-8, and HTTP headers are decoded as Latin-1."""
    try:
        return header.encode("latin-1").decode()
    except UnicodeError:
        return header


def _basic(request: Request) -> tuple[str, str] | None:
    scheme, _, encoded = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        name, given, password = base64.b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return None
    return (name, password) if given else None
