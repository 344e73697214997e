"""What the URLs of all stores and transports have in common: one login for all servers, and ports."""

from __future__ import annotations

from pillarbox.core.errors import ConfigurationError


def check_one_login(login: str) -> None:
    """Raise ConfigurationError if each server has a user of its own: `login`, what stands before the last @, would hide
    all servers but the last. The error never quotes it."""
    if "@" in login and "," in login:
        raise ConfigurationError(
            "the URL has a user for each server; write user and password once, before the first server, and @ and , of "
            "a password as %40 and %2C"
        )


def port_of(port: int | None, default: int) -> int:
    """The port, or the default without one. Raises ConfigurationError for port 0."""
    if port == 0:
        raise ConfigurationError("the URL has port 0, which no server has; correct it, or leave the port out")
    return default if port is None else port
