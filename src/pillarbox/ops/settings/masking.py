"""Addresses without their passwords: what may be printed, logged and raised."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import urlsplit

from pillarbox import schemes
from pillarbox.schemes import STORES, TRANSPORTS

MASK = "***"
_WITHOUT_HOST = ("sqlite", "memory", "stdout")
ADDRESSES = frozenset(schemes.own_schemes()) - frozenset(_WITHOUT_HOST)
"""The schemes of URLs with a host, and so perhaps with a user and a password."""
_SECRET_PATHS = ("http", "https")
"""The schemes of URLs whose path and query may be secret as a whole, because the URL is all that a sender needs."""

_TOKENS = ("nats", "tls")
"""The schemes of URLs in which a user without a password is a token."""
_OPTION = re.compile(r"(?<![\w.-])([\w.-]++)=[^&]*+")
_SECRET = ("pass", "secret", "token", "key")
"""Parts of the names of options whose values are secret."""


def masked(url: str) -> str:
    """`url` with `***` in the place of every password; where that cannot be found, nothing but the scheme."""
    scheme, has_scheme, rest = url.partition("://")
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if has_scheme and scheme in _WITHOUT_HOST and "@" not in authority:
        return url
    if not has_scheme or not any(schemes.is_registered(group, scheme) for group in (STORES, TRANSPORTS)):
        return MASK
    # Where the URLs of another distribution's adapter hold a secret is not known here.
    if scheme not in ADDRESSES or misplaced_password(url):
        return f"{scheme}://{MASK}"
    user, at, host = authority.rpartition("@")
    name, colon, _ = user.partition(":")
    if scheme in _SECRET_PATHS:
        return f"{scheme}://{host}" + (f"/{MASK}" if rest[len(authority) :].strip("/") else "")
    if scheme in _TOKENS and at and not colon:
        name = MASK
    kept = f"{name}{colon}{MASK if colon else ''}{at}{host}"
    return f"{scheme}://{kept}" + _OPTION.sub(_without_secret, rest[len(authority) :])


def masked_value(value: Any) -> Any:
    """The value of a secret setting as it may be shown: a text, a list of texts or a table of texts."""
    if isinstance(value, str):
        return masked(value) if value else value
    if isinstance(value, Mapping):
        return dict.fromkeys(cast("Mapping[str, Any]", value), MASK)
    return (MASK,) * len(cast("Sequence[object]", value)) if isinstance(value, list | tuple) else value


def _without_secret(option: re.Match[str]) -> str:
    name = option[1]
    return f"{name}={MASK}" if any(word in name.lower() for word in _SECRET) else option[0]


def misplaced_password(url: str) -> bool:
    """Whether a / or # or ? in a password has cut the address in two, or an @ stands where none belongs."""
    rest = url.partition("://")[2]
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    login, _, hosts = authority.rpartition("@")
    try:
        _ = [urlsplit(f"//{host}").port for host in hosts.split(",")]  # of a cluster, the URL names several
    except ValueError:
        return True
    return "@" in rest[len(authority) :] or any(mark in login for mark in "@[]")
