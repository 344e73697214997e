"""What a driver's exception says, whichever driver it is and however SQLAlchemy wrapped it."""

from __future__ import annotations

import re

from pillarbox.core.errors import layers

# SQLite has one code for all of them.
_NO_TABLE = re.compile("^no such table|has no column named")


def sqlstate(error: BaseException) -> str | None:
    """PostgreSQL's five-character code."""
    for layer in layers(error):
        for name in ("sqlstate", "pgcode"):
            code = getattr(layer, name, None)
            if isinstance(code, str) and len(code) == 5:
                return code
    return None


def detail(error: BaseException) -> str:
    """PostgreSQL's DETAIL; '' if there is none, as for roles that may not see the row."""
    for layer in layers(error):
        told = getattr(getattr(layer, "diag", None), "message_detail", None) or getattr(layer, "detail", None)
        if isinstance(told, str) and told:
            return told
    return ""


def sqlite_code(error: BaseException) -> str | None:
    """SQLite's extended code by name, such as SQLITE_CONSTRAINT_PRIMARYKEY."""
    for layer in layers(error):
        name = getattr(layer, "sqlite_errorname", None)
        if isinstance(name, str):
            return name
    return None


def tables_missing(error: BaseException) -> bool:
    """Whether a schema, a table or a column is not there."""
    if sqlite_code(error) == "SQLITE_ERROR":
        return bool(_NO_TABLE.search(driver_message(error)))
    return sqlstate(error) in ("42P01", "3F000", "42703")


def refuses_value(error: BaseException) -> bool:
    """Whether the database refuses what it was given: the same value is refused again, however often it is tried."""
    state = sqlstate(error)
    if state is not None:
        return state.startswith(("22", "23"))
    return (sqlite_code(error) or "").startswith(("SQLITE_CONSTRAINT", "SQLITE_MISMATCH", "SQLITE_TOOBIG"))


def driver_message(error: BaseException) -> str:
    """The first line of what the database itself said."""
    *_, innermost = layers(error)
    return str(innermost).partition("\n")[0]
