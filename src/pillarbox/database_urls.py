"""Database URLs as applications already have them: with a driver of SQLAlchemy, or with the parameters of that driver.

`postgresql+asyncpg://app@db/shop?ssl=require` names the same database as `postgresql://app@db/shop?sslmode=require`.
The store has its own driver, so the driver in the URL does not matter.
"""

from __future__ import annotations

import re

_URL = re.compile(r"(postgresql|postgres|mariadb|mysql|sqlite)(\+[a-z0-9_]+)?(://.*)", re.DOTALL)
_DRIVER_PARAMETERS = frozenset(
    (
        "async_fallback",
        "charset",
        "check_same_thread",
        "prepared_statement_cache_size",
        "prepared_statement_name_func",
        "timeout",
    )
)
"""Parameters for the driver of the application, which mean nothing to the store's."""
_LIBPQ_PARAMETERS = frozenset(
    (
        "channel_binding",
        "connect_timeout",
        "fallback_application_name",
        "gssencmode",
        "keepalives",
        "keepalives_count",
        "keepalives_idle",
        "keepalives_interval",
        "load_balance_hosts",
        "sslcompression",
    )
)
"""Parameters for libpq itself. The store's driver would send them to the server, which refuses them."""
_REQUIRED = "channel_binding=require"
"""What cannot be left out: the store refuses it."""
_RENAMED = {"ssl": "sslmode"}
"""SQLAlchemy's asyncpg → PostgreSQL."""


def plain_url(url: str) -> str:
    """The URL without a driver of SQLAlchemy, and without parameters that only another client understands."""
    found = _URL.fullmatch(url)
    if found is None:
        return url
    scheme, driver, rest = found.groups()
    address, _, query = (scheme + rest).partition("?")
    left_out = _DRIVER_PARAMETERS if driver else frozenset[str]()
    if scheme.startswith("postgres"):
        left_out |= _LIBPQ_PARAMETERS
    kept: list[str] = []
    for parameter in query.split("&"):
        name, equals, value = parameter.partition("=")
        if parameter and (name not in left_out or parameter == _REQUIRED):
            kept.append(f"{_RENAMED.get(name, name) if driver else name}{equals}{value}")
    return f"{address}?{'&'.join(kept)}" if kept else address
