"""The transaction of an effect, as the application opens it: a block that commits when it ends well.

The one mistake that could lose an event is a block that ends well and does not commit. Those that are known for it are
refused by name.
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
"""What opens the transaction of an event: SQLAlchemy's engines and session factories, or a function that gives a
block."""

_GIVES = (
    "pass a SQLAlchemy engine or sessionmaker, a psycopg pool's `connection`, a memory store's `transaction`, "
    "or a function of yours decorated with @contextmanager or @asynccontextmanager that yields the open transaction"
)
_NEVER_COMMIT = {
    ("sqlalchemy", name): "`with` on it closes and rolls back; pass the engine or the sessionmaker itself"
    for name in ("Session", "scoped_session", "AsyncSession", "async_scoped_session", "Connection", "AsyncConnection")
}


def opener(transaction: Transactions) -> Open:
    """How to open a transaction, given whatever can. Raises ConfigurationError for what cannot."""
    if why := kind_of(transaction, _NEVER_COMMIT):
        raise ConfigurationError(f"transaction is one {type(transaction).__name__} for all events: {why}")
    begin = getattr(transaction, "begin", None)
    if callable(begin):
        return begin  # type: ignore[no-any-return] # an engine or a sessionmaker: their `begin` is such a function
    if callable(transaction):
        return transaction
    raise ConfigurationError(f"transaction is a {type(transaction).__name__}, which opens none; {_GIVES}")


def opened(open_block: Open) -> Block:
    """A block that was not entered yet. Raises ConfigurationError for something that is none or never commits."""
    block = open_block()
    if why := kind_of(block, _NEVER_COMMIT):
        raise ConfigurationError(f"transaction gives a {type(block).__name__}: {why}")
    if not (is_awaited(block) or hasattr(type(block), "__enter__")):
        raise ConfigurationError(f"transaction gives a {type(block).__name__}, which is no block; {_GIVES}")
    return block


def is_awaited(block: Block) -> TypeGuard[AbstractAsyncContextManager[Any]]:
    """Whether it is entered by `async with`."""
    return hasattr(type(block), "__aenter__")
