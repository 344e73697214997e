"""Opens the transactions of a consumer's handlers: context managers that commit when they exit without an exception.

A context manager that exits without an exception and does not commit would lose events. Classes that are known to do so
are rejected by name.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, TypeAlias, TypeGuard

from pillarbox.connections.accepted import AwaitedTransactionFactory, TransactionFactory
from pillarbox.connections.kinds import kind_of
from pillarbox.core.errors import ConfigurationError

Block = AbstractContextManager[Any] | AbstractAsyncContextManager[Any]
Open = Callable[[], Block]
Transactions: TypeAlias = TransactionFactory | AwaitedTransactionFactory | Open
"""Opens the transaction of an event: an engine or a session factory of SQLAlchemy, or a function that returns a context
manager."""

_ACCEPTED = (
    "pass a SQLAlchemy engine or sessionmaker, a psycopg pool's `connection`, a memory store's `transaction`, "
    "or a function of yours decorated with @contextmanager or @asynccontextmanager that yields the open transaction"
)
_NEVER_COMMIT = {
    ("sqlalchemy", name): "`with` on it closes and rolls back; pass the engine or the sessionmaker itself"
    for name in ("Session", "scoped_session", "AsyncSession", "async_scoped_session", "Connection", "AsyncConnection")
}


def opener(transaction: Transactions) -> Open:
    """The function that opens a transaction. Raises ConfigurationError for an object that cannot open one."""
    if why := kind_of(transaction, _NEVER_COMMIT):
        raise ConfigurationError(f"transaction is a {type(transaction).__name__}, which all events would share: {why}")
    begin = getattr(transaction, "begin", None)
    if callable(begin):
        return begin  # type: ignore[no-any-return] # an engine or a sessionmaker: their `begin` is such a function
    if callable(transaction):
        return transaction
    raise ConfigurationError(f"transaction is a {type(transaction).__name__}, which opens no transaction; {_ACCEPTED}")


def opened(open_block: Open) -> Block:
    """A transaction that is not entered yet.

    Raises ConfigurationError for an object that is not a context manager or never commits.
    """
    block = open_block()
    if why := kind_of(block, _NEVER_COMMIT):
        raise ConfigurationError(f"transaction returns a {type(block).__name__}: {why}")
    if not (is_awaited(block) or hasattr(type(block), "__enter__")):
        raise ConfigurationError(
            f"transaction returns a {type(block).__name__}, which is not a context manager; {_ACCEPTED}"
        )
    return block


def is_awaited(block: Block) -> TypeGuard[AbstractAsyncContextManager[Any]]:
    """Whether `async with` enters it."""
    return hasattr(type(block), "__aenter__")
