"""What a driver's module tells about its connections. The modules in `drivers/` each define one `DRIVER`.

A class is named by its package and its name, because this package imports no driver.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pillarbox.connections.connection import AsyncConnection, Steps, SyncConnection
from pillarbox.connections.placeholders import Style

ClassName = tuple[str, str]
"""The top-level package of a class, and the name of the class."""
TransactionOpener = Callable[[Any], AbstractContextManager[Any]]
"""Opens a transaction of a pool, an engine or a session factory; it commits when its block succeeds."""
AsyncTransactionOpener = Callable[[Any], AbstractAsyncContextManager[Any]]
"""`TransactionOpener`, awaited."""


class BehindSqlAlchemy(NamedTuple):
    """How SQLAlchemy's connection runs statements on a driver's connection."""

    dialect: str
    style: Style
    guard: Callable[[Any, Any, str], Steps[None]]
    """Given the driver's connection, SQLAlchemy's adapter around it, and the remedy for the error: raise
    NotInTransactionError if an INSERT would commit by itself."""
    name: str
    """The driver in SQLAlchemy's URLs: `postgresql+psycopg`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """The connections of one driver."""

    accepts: str
    """What to pass to `record` and the inbox, for error messages: "a psycopg Connection or AsyncConnection"."""
    connections: Mapping[ClassName, Callable[[Any], SyncConnection]] = field(
        default_factory=dict[ClassName, Callable[[Any], SyncConnection]]
    )
    async_connections: Mapping[ClassName, Callable[[Any], AsyncConnection]] = field(
        default_factory=dict[ClassName, Callable[[Any], AsyncConnection]]
    )
    pools: Mapping[ClassName, TransactionOpener] = field(default_factory=dict[ClassName, TransactionOpener])
    """What `Outbox.record` opens a transaction of its own on: pools, engines, session factories."""
    async_pools: Mapping[ClassName, AsyncTransactionOpener] = field(
        default_factory=dict[ClassName, AsyncTransactionOpener]
    )
    behind_sqlalchemy: Mapping[ClassName, BehindSqlAlchemy] = field(default_factory=dict[ClassName, BehindSqlAlchemy])
    remedies: Mapping[ClassName, str] = field(default_factory=dict[ClassName, str])
    """What to do instead of passing an object of this class: "pass the cursor's `.connection`"."""
