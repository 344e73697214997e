"""How people log in. Each way answers one question: who sends this request?

Nobody      no login: for this machine only
Users       a file or a variable of names and hashed passwords, with a page to log in on
Proxy       a header that a proxy in front of us has set; heard from its addresses only
Host        a function of the application that the console is mounted in
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
from pillarbox.ops.console.access import Role, User, rights
from pillarbox.ops.console.addresses import client_of, is_within, network, peer_of
from pillarbox.ops.console.sessions import SESSION, Session, Signer, mark_of, open_session
from pillarbox.ops.console.throttle import Throttle
from pillarbox.ops.console.users import Users, read

_log = logging.getLogger("pillarbox.console")

WAITING = 10
"""Tries that may wait for their turn at an address from which somebody seems to guess."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Somebody who is logged in."""

    user: User
    holder: str
    """What the tokens of their forms are tied to."""
    by_session: bool = False
    """`holder` is the number of a session, which may have been ended."""
    by_header: bool = False
    """They sent their password with this very request; a browser may have cached it, so it proves no intent."""


class Login(Protocol):
    """`page`: people log in on a page of ours."""

    page: bool

    async def who(self, request: Request, signer: Signer) -> Identity | None: ...


class NoLogin:
    """Everybody who can reach us is the same person and may do everything."""

    page = False

    def __init__(self, name: str) -> None:
        self._identity = Identity(user=User(name=name, role=Role.ADMIN, payloads=True), holder="")

    async def who(self, request: Request, signer: Signer) -> Identity | None:
        return self._identity


class UsersFile:
    """The people of a file; a change of the file is heard at the next request."""

    def __init__(self, file: Path) -> None:
        """Raises ConfigurationError."""
        self._file = file
        self._stamp, self._users = self._look(), read(file)

    def __call__(self) -> Users:
        """Raises UsersUnavailableError if the file has become unreadable: then nobody is let in."""
        if (stamp := self._look()) != self._stamp:
            try:
                self._stamp, self._users = stamp, read(self._file)
            except ConfigurationError as error:
                # Strangers are not told where it lies.
                _log.error("%s", error)
                raise UsersUnavailableError from None
        return self._users

    def _look(self) -> tuple[int, int]:
        try:
            found = self._file.stat()
        except OSError:
            return 0, 0
        return found.st_mtime_ns, found.st_ino


class UserLogin:
    """Names and passwords: on the login page, or in each request to the API as HTTP Basic."""

    page = True

    def __init__(self, users: Callable[[], Users], *, proxies: Sequence[str] = (), clock: Clock | None = None) -> None:
        """proxies: addresses whose `X-Forwarded-For` is believed. Raises ConfigurationError if there is nobody who
        could log in."""
        if not users():
            raise ConfigurationError("there are no users: add one with `pillarbox console user add NAME --role admin`")
        self._users = users
        self._clock = clock or SystemClock()
        self._throttle = Throttle(clock=self._clock)
        self._proxies = [network(address) for address in proxies]
        self._turn = asyncio.Semaphore(2)  # each takes 16 MiB
        self._queues: dict[str, _Queue] = {}
        self._nobody = passwords.hashed("")

    async def who(self, request: Request, signer: Signer) -> Identity | None:
        if (credentials := _basic(request)) is not None:
            user = await self.enter(*credentials, address=self.address(request))
            return None if user is None else Identity(user=user, holder=user.name, by_header=True)
        session = open_session(signer, request.cookies.get(SESSION))
        entry = None if session is None else self._users().get(session.name)
        if session is None or entry is None or mark_of(entry.hash) != session.mark:
            return None
        return Identity(user=entry.user, holder=session.number, by_session=True)

    def address(self, request: Request) -> str:
        """Whose failures are counted together."""
        return client_of(request, self._proxies)

    async def enter(self, name: str, password: str, *, address: str) -> User | None:
        """The person of this name and password. Raises TooManyAttemptsError."""
        # One try at a time for each address: whoever guesses takes no turn from others. Looked at and counted within
        # it: of guesses that come at once no more are tried than one by one.
        queue = self._queues.setdefault(address, _Queue())
        queue.waiting += 1
        try:
            if queue.waiting > WAITING and self._throttle.suspects(address):
                raise TooManyAttemptsError
            async with queue.turn:
                return await self._try(name, password, address=address)
        finally:
            queue.waiting -= 1
            if not queue.waiting:
                self._queues.pop(address, None)

    async def _try(self, name: str, password: str, *, address: str) -> User | None:
        entry = self._users().get(name)
        if self._throttle.closed(address=address, name=name):
            raise TooManyAttemptsError
        await self._clock.sleep(self._throttle.delay(address=address, name=name))
        async with self._turn:
            # A name that does not exist takes as long as one that does.
            right = await asyncio.to_thread(passwords.matches, password, entry.hash if entry else self._nobody)
        if entry is None or not right:
            self._throttle.failed(address=address, name=name)
            return None
        self._throttle.forget(address=address, name=name)
        return entry.user

    def begin(self, user: User) -> Session:
        return Session.begin(user.name, self._users()[user.name].hash)


@dataclass(slots=True)
class _Queue:
    """Those who try from one address."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: int = 0


class TooManyAttemptsError(Exception):
    """Somebody guesses."""


class UsersUnavailableError(Exception):
    """Who may log in cannot be found out."""


class ProxyLogin:
    """What a proxy that has logged people in says about them; what anybody else says is not heard."""

    page = False

    def __init__(
        self, *, addresses: Sequence[str], user_header: str, role_header: str = "", role: str = "viewer"
    ) -> None:
        """role: for those of whom the proxy does not say it, such as `operator+payloads`. Raises ConfigurationError."""
        self._networks = [network(address) for address in addresses]
        if not self._networks:
            raise ConfigurationError("a login by proxy needs the addresses of that proxy: console.proxy_addresses")
        self._user_header, self._role_header = user_header, role_header
        self._rights = rights(role)

    async def who(self, request: Request, signer: Signer) -> Identity | None:
        name = _text(request.headers.get(self._user_header, ""))
        if not name or not is_within(self._networks, peer_of(request)):
            return None
        said = request.headers.get(self._role_header, "") if self._role_header else ""
        try:
            role, payloads = rights(said) if said else self._rights
        except ConfigurationError:
            return None
        return Identity(user=User(name=name[:64], role=role, payloads=payloads), holder=name)


Ask = Callable[[Request], User | Awaitable[User | None] | None]


class HostLogin:
    """The application knows: its function gets the request and answers with a user or None."""

    page = False

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def who(self, request: Request, signer: Signer) -> Identity | None:
        answer = self._ask(request)
        user = await answer if inspect.isawaitable(answer) else answer
        return None if user is None else Identity(user=user, holder=user.name)


def _text(header: str) -> str:
    """A header as it was meant: proxies write names in UTF-8, and HTTP takes every byte for a letter."""
    try:
        return header.encode("latin-1").decode()
    except UnicodeError:
        return header


def _basic(request: Request) -> tuple[str, str] | None:
    scheme, _, encoded = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        name, _, password = base64.b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return None
    return name, password
