"""Statements inside somebody else's transaction: which handles are accepted, and how each is run.

The standard library and nothing else: drivers are recognised by name and only asked through their own methods.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pillarbox.core.errors import HandleRefused
from pillarbox.handles.asyncpg import AsyncpgConnection
from pillarbox.handles.handle import AsyncHandle, Database, Errand, Rows, Statement, Steps, SyncHandle, T
from pillarbox.handles.kinds import kind_of
from pillarbox.handles.psycopg import PsycopgAsyncConnection, PsycopgConnection
from pillarbox.handles.sqlalchemy import (
    SqlAlchemyAsyncConnection,
    SqlAlchemyAsyncSession,
    SqlAlchemyConnection,
    SqlAlchemySession,
)
from pillarbox.handles.sqlite import SqliteConnection
from pillarbox.handles.strangers import refusal

__all__ = ["Database", "Errand", "Rows", "Statement", "Steps", "arun", "run"]

_SYNC: dict[tuple[str, str], Callable[[Any], SyncHandle]] = {
    ("sqlalchemy", "Session"): SqlAlchemySession,
    ("sqlalchemy", "scoped_session"): SqlAlchemySession,
    ("sqlalchemy", "Connection"): SqlAlchemyConnection,
    ("psycopg", "Connection"): PsycopgConnection,
    ("sqlite3", "Connection"): SqliteConnection,
}
_ASYNC: dict[tuple[str, str], Callable[[Any], AsyncHandle]] = {
    ("sqlalchemy", "AsyncSession"): SqlAlchemyAsyncSession,
    ("sqlalchemy", "async_scoped_session"): SqlAlchemyAsyncSession,
    ("sqlalchemy", "AsyncConnection"): SqlAlchemyAsyncConnection,
    ("psycopg", "AsyncConnection"): PsycopgAsyncConnection,
    ("asyncpg", "Connection"): AsyncpgConnection,
    ("asyncpg", "PoolConnectionProxy"): AsyncpgConnection,
}


def run(handle: object, errand: Errand[T], *, instead: str) -> T:
    """Do the errand in the handle's transaction; `instead` names the call for handles that are awaited.

    Raises HandleRefused for anything that is not an open, blocking handle, and NotInTransaction if the errand's
    first write would commit by itself. What the driver raises goes to the errand.
    """
    if found := kind_of(handle, _SYNC):
        return found(handle).run(errand)
    if kind_of(handle, _ASYNC):
        raise HandleRefused(f"{_name(handle)} is awaited; call {instead}")
    raise refusal(handle)


async def arun(handle: object, errand: Errand[T], *, instead: str) -> T:
    """`run`, awaited; `instead` names the call for handles that block."""
    if found := kind_of(handle, _ASYNC):
        return await found(handle).arun(errand)
    if kind_of(handle, _SYNC):
        raise HandleRefused(f"{_name(handle)} is not awaited; call {instead}")
    raise refusal(handle)


def _name(handle: object) -> str:
    return f"{type(handle).__module__}.{type(handle).__qualname__}"
