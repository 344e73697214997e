"""The section [console], and the arguments of `Console` that it shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pillarbox.core.clock import Duration
from pillarbox.ops.settings.kinds import Listen, PathPrefix, Secret
from pillarbox.ops.settings.tables import same_as
from pillarbox.settings import Span, Text, Texts, check_settings, setting


@dataclass(frozen=True, kw_only=True)
class ConsoleOptions:
    """The arguments of `Console` that are settings."""

    python_name: ClassVar[str] = "Console"

    session: Duration = setting("8h", Span(), "How long a login lasts.")
    origins: Sequence[str] = setting(
        (), Texts(), "The origins of browsers where a proxy changes the host, as in `https://ops.example.com`."
    )
    slo: Duration = setting(
        "1m",
        Span(),
        "How long an event may be pending before the console reports it as late and its status as degraded.",
    )
    mask: Sequence[str] = setting(
        (),
        Texts(),
        "What no user sees: `$.customer.email`, `$.items[*].name`, `$..email`, `header:authorization`, and in any text "
        "`text:[^ ]+@[^ ]+`.",
    )
    title: str = setting("Pillarbox", Text(), "The title of the pages.")

    def __post_init__(self) -> None:
        check_settings(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleSettings:
    """The web console."""

    listen: str = setting(
        "127.0.0.1:8980", Listen(), "Where the console is served. Beyond this machine it needs a login."
    )
    login: str = setting(
        "file",
        Text(),
        "How users log in: `file` (names and passwords), `proxy` (a header of the proxy in front), `MODULE:OBJECT` (a "
        "function of the application) or `none` (this machine only).",
    )
    users_file: str = setting(
        "pillarbox.users", Text(), "Names, roles and hashed passwords, as `console user add` writes them."
    )
    users: str | None = setting(
        None, Text(), "The content of such a file, for containers. It replaces `users_file`.", secret=True
    )
    proxy_addresses: tuple[str, ...] = setting(
        (), Texts(), "Login by `proxy`: the addresses or networks whose headers are trusted."
    )
    proxy_user_header: str = setting("X-Forwarded-User", Text(), "Login by `proxy`: the header with the user's name.")
    proxy_role_header: str = setting(
        "", Text(), "Login by `proxy`: the header with the role, as in `operator+payloads`. Empty: no header."
    )
    proxy_role: str = setting("viewer", Text(), "Login by `proxy`: the role of a user without that header.")
    trusted_proxies: tuple[str, ...] = setting(
        (),
        Texts(),
        "Addresses or networks of proxies in front. Wrong passwords are counted per client that their "
        "`X-Forwarded-For` names; without it per address of the proxy, which all users share.",
    )
    session: str = same_as(ConsoleOptions, "session")
    secret: str | None = setting(
        None,
        Secret(),
        "The key that signs cookies, 16 characters or more. Not set: a new one at each start, which ends all logins.",
        secret=True,
    )
    origins: tuple[str, ...] = same_as(ConsoleOptions, "origins")
    root_path: str = setting("", PathPrefix(), "What a proxy removes from the front of every path, as in `/outbox`.")
    slo: str = same_as(ConsoleOptions, "slo")
    mask: tuple[str, ...] = same_as(ConsoleOptions, "mask")
    query_timeout: str = setting("5s", Span(), "How long a query of the console may take (PostgreSQL, MariaDB).")
    title: str = same_as(ConsoleOptions, "title")
