"""Statements inside somebody else's transaction: which handles are accepted, and how each is run.

The standard library and nothing else: drivers are recognised by name and only asked through their own methods.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pillarbox.core.errors import HandleRefused
from pillarbox.handles import pools
from pillarbox.handles.asyncpg import AsyncpgConnection
from pillarbox.handles.handle import AsyncHandle, Dialect, Errand, Rows, Statement, Steps, SyncHandle, T
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

__all__ = ["Dialect", "Errand", "Rows", "Statement", "Steps", "arun", "run"]

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


def run(handle: object, errand: Errand[T], *, instead: str, own_transaction: bool = False) -> T:
    """Do the errand in the handle's transaction; `instead` names the call for handles that are awaited.

    own_transaction: with an engine, a session factory or a pool, do the errand in a transaction opened for it alone
    and commit; otherwise those are refused.
    Raises HandleRefused for anything that is not an open, blocking handle, and NotInTransaction if the errand's
    first write would commit by itself. What the driver raises goes to the errand.
    """
    if found := kind_of(handle, _SYNC):
        return found(handle).run(errand)
    if own_transaction and (begin := kind_of(handle, pools.SYNC)):
        with begin(handle) as opened:
            return run(opened, errand, instead=instead)
    if kind_of(handle, _ASYNC) or (own_transaction and kind_of(handle, pools.ASYNC)):
        raise HandleRefused(f"{_name(handle)} is awaited; call {instead}")
    raise refusal(handle)


async def arun(handle: object, errand: Errand[T], *, instead: str, own_transaction: bool = False) -> T:
    """`run`, awaited; `instead` names the call for handles that block."""
    if found := kind_of(handle, _ASYNC):
        return await found(handle).arun(errand)
    if own_transaction and (begin := kind_of(handle, pools.ASYNC)):
        async with begin(handle) as opened:
            return await arun(opened, errand, instead=instead)
    if kind_of(handle, _SYNC) or (own_transaction and kind_of(handle, pools.SYNC)):
        raise HandleRefused(f"{_name(handle)} is not awaited; call {instead}")
    raise refusal(handle)


def _name(handle: object) -> str:
    return f"{type(handle).__module__}.{type(handle).__qualname__}"
