"""The servers that a URL names: one, or several of which one accepts writes.

postgresql://db1:5432,db2:5432/shop?target_session_attrs=read-write

The driver has one timeout for all hosts: one that drops packets would use it up. So each host is tried for itself, the
one that accepted the last connection first.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

from pillarbox.core.errors import ConfigurationError
from pillarbox.settings.urls import check_one_login, port_of

PORT = 5432
_SCHEMES = ("postgresql", "postgres")


class Host(NamedTuple):
    """A name, an address or the folder of a socket, and a port."""

    name: str
    port: int

    def __str__(self) -> str:
        return f"{self.name}:{self.port}"


class ServerAddress(NamedTuple):
    """What a URL says about its servers."""

    hosts: tuple[Host, ...]
    """() if the URL leaves it to the driver: a local socket."""
    where: str
    """Hosts, ports and database, without user and password: for messages."""
    session: str | None
    """What a session must accept to be used; None leaves it to the URL and the driver."""


def address_of(url: str) -> ServerAddress:
    """Read a URL. Raises ConfigurationError, which never contains the password."""
    scheme, _, rest = url.partition("://")
    if scheme not in _SCHEMES:
        raise ConfigurationError("the store's URL must begin with postgresql://, as in postgresql://app@db:5432/shop")
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    tail = urlsplit(f"//{rest[len(authority) :]}")
    if "@" in rest[len(authority) :]:
        # A / or ? or # in the password has cut the URL in two: what looks like a database is the password's end.
        raise ConfigurationError("user, password and host in the store's URL cannot be told apart; write / as %2F")
    check_one_login(authority.rpartition("@")[0])
    asked = dict(parse_qsl(tail.query))
    if asked.get("channel_binding") == "require":
        raise ConfigurationError(
            "the store's URL has channel_binding=require, which the driver cannot do; remove it, and write "
            "sslmode=verify-full, which identifies the server by its certificate"
        )
    hosts = _hosts(authority.rpartition("@")[2], asked.get("host", ""), asked.get("port", ""))
    named = ",".join(map(str, hosts)) or f"local socket:{asked.get('port', PORT)}"
    # A store writes: of several servers, it needs the one that accepts writes.
    needs = len(hosts) > 1 and "target_session_attrs" not in asked
    return ServerAddress(hosts, f"{named}{tail.path}", "read-write" if needs else None)


def _hosts(authority: str, asked: str, ports: str) -> tuple[Host, ...]:
    if authority and asked:
        raise ConfigurationError("the store's URL names hosts before the database and as host=…; keep one of them")
    if not (named := (authority or asked)):
        return ()
    given = [_host(one, is_name=bool(asked)) for one in named.split(",")]
    defaults = [_port(one) for one in ports.split(",")] if ports else [PORT]
    if len(defaults) not in (1, len(given)):
        raise ConfigurationError(f"the store's URL has {len(given)} hosts and {len(defaults)} ports; give one for each")
    if len(defaults) == 1:
        defaults *= len(given)
    return tuple(Host(name, port_of(port, default)) for (name, port), default in zip(given, defaults, strict=True))


def _host(text: str, *, is_name: bool) -> tuple[str, int | None]:
    if is_name and not text.startswith("["):
        name, port = text, ""
    else:
        found = re.fullmatch(r"(\[[^\]]*\]|[^:]*)(?::(.*))?", text)
        if found is None:
            raise _unreadable()
        name, port = found[1].strip("[]"), found[2] or ""
    if not name:
        raise ConfigurationError("a host in the store's URL is empty; write host1:5432,host2:5432")
    return name, _port(port) if port else None


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 5 and 0 < int(text) < 65_536):
        raise _unreadable()
    return int(text)


def _unreadable() -> ConfigurationError:
    return ConfigurationError("host or port in the store's URL cannot be read")
