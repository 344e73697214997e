"""Create a console from settings. Insecure and invalid settings are rejected before a port is opened."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import cast

from pillarbox.admin.admin import AdminStore
from pillarbox.core.errors import ConfigurationError
from pillarbox.ops.console.app import Console
from pillarbox.ops.console.guard import is_local
from pillarbox.ops.console.logins import Authenticate, HostLogin, Login, NoLogin, ProxyLogin, UserLogin, UsersFile
from pillarbox.ops.console.users import parse
from pillarbox.ops.importing import import_callable
from pillarbox.ops.settings import Settings
from pillarbox.ops.settings.console import ConsoleSettings


def open_console(settings: Settings, store: AdminStore, *, read_only: bool) -> Console:
    """Create the console of the settings. Raises ConfigurationError."""
    given = settings.console
    check_listen_address(settings)
    return Console(
        store,
        login=make_login(given),
        read_only=read_only,
        mask=given.mask,
        slo=given.slo,
        session=given.session,
        secret=given.secret or "",
        origins=given.origins,
        title=given.title,
        max_payload=settings.store.max_payload,
        settings=settings,
    )


def check_listen_address(settings: Settings) -> None:
    """Raises ConfigurationError for a console without a login on an address that other machines can reach."""
    given = settings.console
    host = given.listen.rpartition(":")[0].strip("[]")
    if given.login == "none" and not is_local(host):
        raise ConfigurationError(
            f"{settings.called('console', 'listen')}: without a login the console listens on loopback only, and "
            f"other machines can reach {host}; use 127.0.0.1, or set console.login"
        )


def make_login(given: ConsoleSettings) -> Login:
    """Create the login of the settings. Raises ConfigurationError."""
    match given.login:
        case "none":
            return NoLogin(_current_user())
        case "proxy":
            return ProxyLogin(
                addresses=given.proxy_addresses,
                user_header=given.proxy_user_header,
                role_header=given.proxy_role_header,
                role=given.proxy_role,
            )
        case "file":
            if given.users is not None:
                users = parse(given.users, called="console.users")
                return UserLogin(lambda: users, proxies=given.trusted_proxies)
            return UserLogin(UsersFile(Path(given.users_file)), proxies=given.trusted_proxies)
        case path if ":" in path:
            return HostLogin(cast(Authenticate, import_callable(path)))
        case other:
            raise ConfigurationError(f"console.login is {other!r}: write file, proxy, none, or MODULE:OBJECT")


def _current_user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
