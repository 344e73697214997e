"""Addresses without their passwords: what may be printed, logged and raised."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from pillarbox import plugins
from pillarbox.plugins import STORES, TRANSPORTS

MASK = "***"
ADDRESSES = ("postgresql", "postgres", "amqp", "amqps")
"""The schemes of URLs with a host, and so perhaps with a user and a password."""
_WITHOUT_HOST = ("sqlite", "memory", "stdout")

_OPTION = re.compile(r"(?<![\w.-])([\w.-]++)=[^&]*+")
_SECRET = ("pass", "secret", "token", "key")
"""Parts of the names of options whose values are secret."""


def masked(url: str) -> str:
    """`url` with `***` in the place of every password; where that cannot be found, nothing but the scheme."""
    scheme, has_scheme, rest = url.partition("://")
    if has_scheme and scheme in _WITHOUT_HOST:
        return url
    if not has_scheme or not any(plugins.is_registered(group, scheme) for group in (STORES, TRANSPORTS)):
        return MASK
    # Where the URLs of another distribution's adapter hold a secret is not known here.
    if scheme not in ADDRESSES or misplaced_password(url):
        return f"{scheme}://{MASK}"
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    user, at, host = authority.rpartition("@")
    name, colon, _ = user.partition(":")
    kept = f"{name}{colon}{MASK if colon else ''}{at}{host}"
    return f"{scheme}://{kept}" + _OPTION.sub(_without_secret, rest[len(authority) :])


def _without_secret(option: re.Match[str]) -> str:
    name = option[1]
    return f"{name}={MASK}" if any(word in name.lower() for word in _SECRET) else option[0]


def misplaced_password(url: str) -> bool:
    """Whether a / or # or ? in a password has cut the address in two, or an @ stands where none belongs."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return True
    return "@" in parts.path + parts.query + parts.fragment or parts.netloc.count("@") > 1
