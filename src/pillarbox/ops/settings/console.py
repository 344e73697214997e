"""Every setting of the web console."""

from __future__ import annotations

from dataclasses import dataclass

from pillarbox.ops.settings.console_kinds import Prefix, Secret
from pillarbox.ops.settings.describing import key
from pillarbox.ops.settings.kinds import Listen, Span, Text, Texts


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleSettings:
    """The web console."""

    listen: str = key(
        Listen(), "where the console is served; beyond this machine only with a login", default="127.0.0.1:8980"
    )
    login: str = key(
        Text(),
        "how people log in: `file` (names and passwords), `proxy` (a header of the proxy in front), `MODULE:OBJECT` "
        "(a function of yours), or `none` (this machine only)",
        default="file",
    )
    users_file: str = key(Text(), "names, roles and hashed passwords: `console user add`", default="pillarbox.users")
    users: str | None = key(
        Text(), "what would stand in that file, for containers; used instead of it", default=None, secret=True
    )
    proxy_addresses: tuple[str, ...] = key(
        Texts(), "whom the headers of a login by `proxy` are believed: addresses or networks", default=()
    )
    proxy_user_header: str = key(Text(), "the header with the name", default="X-Forwarded-User")
    proxy_role_header: str = key(Text(), "the header with the role, as in `operator+payloads`; empty: none", default="")
    proxy_role: str = key(Text(), "the role of those for whom that header is missing", default="viewer")
    trusted_proxies: tuple[str, ...] = key(
        Texts(),
        "addresses or networks of proxies in front: wrong passwords are counted by the client that their "
        "`X-Forwarded-For` names; without it by the proxy's own address, which everybody shares",
        default=(),
    )
    session: str = key(Span(), "how long a login lasts", default="8h")
    secret: str | None = key(
        Secret(),
        "what cookies are signed with, 16 characters or more; without it a new one at each start, and all logins end",
        default=None,
        secret=True,
    )
    origins: tuple[str, ...] = key(
        Texts(), "what browsers call the console where a proxy changes the host: `https://ops.example.com`", default=()
    )
    root_path: str = key(Prefix(), "what a proxy takes off the front of every path, as in `/outbox`", default="")
    slo: str = key(
        Span(), "how long an event may wait before it counts as held up, and the first page turns red", default="60s"
    )
    mask: tuple[str, ...] = key(
        Texts(),
        "what nobody sees: `$.customer.email`, `$.items[*].name`, `$..email`, `header:authorization`, and in any text "
        "`text:[^ ]+@[^ ]+`",
        default=(),
    )
    statement_timeout: str = key(Span(), "how long a query of the console may take (PostgreSQL)", default="5s")
    title: str = key(Text(), "what the pages call themselves", default="Pillarbox")
