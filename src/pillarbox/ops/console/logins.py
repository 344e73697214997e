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
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Protocol

from starlette.requests import Request

from pillarbox.core.errors import ConfigurationError
from pillarbox.ops.console import passwords
from pillarbox.ops.console.access import Person, Role, rights
from pillarbox.ops.console.sessions import SESSION, Ended, Session, Signer, mark_of, open_session
from pillarbox.ops.console.throttle import Throttle
from pillarbox.ops.console.users import Users, read

_log = logging.getLogger("pillarbox.console")


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Somebody who is logged in."""

    person: Person
    holder: str
    """What the tokens of their forms are tied to."""
    by_header: bool = False
    """They sent their password with this very request, which no other site can make a browser do."""


class Login(Protocol):
    """`page`: people log in on a page of ours."""

    page: bool

    async def who(self, request: Request, signer: Signer) -> Known | None: ...


class NoLogin:
    """Everybody who can reach us is the same person and may do everything."""

    page = False

    def __init__(self, name: str) -> None:
        self._known = Known(person=Person(name=name, role=Role.ADMIN, payloads=True), holder="")

    async def who(self, request: Request, signer: Signer) -> Known | None:
        return self._known


class UsersFile:
    """The people of a file; a change of the file is heard at the next request."""

    def __init__(self, file: Path) -> None:
        """Raises ConfigurationError."""
        self._file = file
        self._stamp, self._users = self._look(), read(file)

    def __call__(self) -> Users:
        """Raises NobodyKnown if the file has become unreadable: then nobody is let in."""
        if (stamp := self._look()) != self._stamp:
            try:
                self._stamp, self._users = stamp, read(self._file)
            except ConfigurationError as error:
                # Strangers are not told where it lies.
                _log.error("%s", error)
                raise NobodyKnown from None
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

    def __init__(self, users: Callable[[], Users]) -> None:
        """Raises ConfigurationError if there is nobody who could log in."""
        if not users():
            raise ConfigurationError("there are no users: add one with `pillarbox console user add NAME --role admin`")
        self._users = users
        self._throttle = Throttle()
        self._turn = asyncio.Semaphore(2)  # each takes 16 MiB
        self._nobody = passwords.hashed("")
        self._ended = Ended()

    async def who(self, request: Request, signer: Signer) -> Known | None:
        if (credentials := _basic(request)) is not None:
            person = await self.enter(*credentials, address=_address(request))
            return None if person is None else Known(person=person, holder=person.name, by_header=True)
        session = open_session(signer, request.cookies.get(SESSION))
        user = None if session is None else self._users().get(session.name)
        if session is None or user is None or mark_of(user.hash) != session.mark or session.number in self._ended:
            return None
        return Known(person=user.person, holder=session.number)

    async def enter(self, name: str, password: str, *, address: str) -> Person | None:
        """The person of this name and password. Raises TooManyTries."""
        user = self._users().get(name)
        # Looked at and counted within the turn: of guesses that come at once hardly more are tried than one by one.
        async with self._turn:
            if self._throttle.closed(address=address, name=name):
                raise TooManyTries
            # A name that does not exist takes as long as one that does.
            right = await asyncio.to_thread(passwords.matches, password, user.hash if user else self._nobody)
            if user is None or not right:
                self._throttle.failed(address=address, name=name)
                return None
        self._throttle.forget(address=address, name=name)
        return user.person

    def begin(self, person: Person) -> Session:
        return Session.begin(person.name, self._users()[person.name].hash)

    def end(self, number: str, *, life: float) -> None:
        """A session that would have lasted for `life` seconds at most."""
        self._ended.add(number, life=life)


class TooManyTries(Exception):
    """Somebody guesses."""


class NobodyKnown(Exception):
    """Who may log in cannot be found out."""


class ProxyLogin:
    """What a proxy that has logged people in says about them; what anybody else says is not heard."""

    page = False

    def __init__(
        self, *, addresses: Sequence[str], user_header: str, role_header: str = "", role: str = "viewer"
    ) -> None:
        """role: for those of whom the proxy does not say it, such as `operator+payloads`. Raises ConfigurationError."""
        self._networks = [_network(address) for address in addresses]
        if not self._networks:
            raise ConfigurationError("a login by proxy needs the addresses of that proxy: console.proxy_addresses")
        self._user_header, self._role_header = user_header, role_header
        self._rights = rights(role)

    async def who(self, request: Request, signer: Signer) -> Known | None:
        name = _text(request.headers.get(self._user_header, ""))
        if not name or not from_one_of(self._networks, request):
            return None
        said = request.headers.get(self._role_header, "") if self._role_header else ""
        try:
            role, payloads = rights(said) if said else self._rights
        except ConfigurationError:
            return None
        return Known(person=Person(name=name[:64], role=role, payloads=payloads), holder=name)


Ask = Callable[[Request], Person | Awaitable[Person | None] | None]


class HostLogin:
    """The application knows: its function gets the request and answers with a person or None."""

    page = False

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def who(self, request: Request, signer: Signer) -> Known | None:
        answer = self._ask(request)
        person = await answer if inspect.isawaitable(answer) else answer
        return None if person is None else Known(person=person, holder=person.name)


Network = IPv4Network | IPv6Network


def from_one_of(networks: Sequence[Network], request: Request) -> bool:
    """Whether the other end of this connection is one of them."""
    try:
        peer = ip_address(_address(request))
    except ValueError:
        return False
    return any(peer in network for network in networks)


def _network(address: str) -> Network:
    try:
        return ip_network(address)
    except ValueError:
        raise ConfigurationError(
            f"{address!r} is no address of a proxy: write for example 10.0.0.7 or 10.0.0.0/24"
        ) from None


def _text(header: str) -> str:
    """A header as it was meant: proxies write names in UTF-8, and HTTP takes every byte for a letter."""
    try:
        return header.encode("latin-1").decode()
    except UnicodeError:
        return header


def _address(request: Request) -> str:
    return request.client.host if request.client else ""


def _basic(request: Request) -> tuple[str, str] | None:
    scheme, _, encoded = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        name, _, password = base64.b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return None
    return name, password
