"""Database URLs as applications already have them: with a driver of SQLAlchemy, or with the parameters of that driver.

`postgresql+asyncpg://app@db/shop?ssl=require` names the same database as `postgresql://app@db/shop?sslmode=require`.
The store has its own driver, so the driver in the URL does not matter.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, quote, urlencode

_WITH_DRIVER = re.compile(r"(postgresql|postgres|mariadb|mysql|sqlite)\+[a-z0-9_]+(://.*)", re.DOTALL)
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
_RENAMED = {"ssl": "sslmode"}
"""SQLAlchemy's asyncpg → PostgreSQL."""


def plain_url(url: str) -> str:
    """The URL without a driver of SQLAlchemy; a URL without a driver is returned as it is."""
    found = _WITH_DRIVER.fullmatch(url)
    if found is None:
        return url
    address, has_query, query = (found[1] + found[2]).partition("?")
    kept = [
        (_RENAMED.get(name, name), value)
        for name, value in parse_qsl(query, keep_blank_values=True)
        if name not in _DRIVER_PARAMETERS
    ]
    return f"{address}?{urlencode(kept, safe='/', quote_via=quote)}" if has_query and kept else address
