"""Run statements inside the caller's transaction: one module per driver, in `drivers/`.

This package imports no driver. It recognises a driver's connection by the name of its class and calls its methods.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pillarbox.connections import registry
from pillarbox.connections.connection import AsyncConnection, BoundStatement, Operation, Rows, Steps, SyncConnection, T
from pillarbox.connections.driver import AsyncTransactionOpener, ClassName, TransactionOpener
from pillarbox.connections.kinds import kind_of
from pillarbox.connections.unsupported import refusal
from pillarbox.core.errors import InvalidConnectionError

__all__ = ["BoundStatement", "Operation", "Rows", "Steps", "arun", "run"]

_SYNC: Mapping[ClassName, Callable[[Any], SyncConnection]] = registry.known_classes("connections")
_ASYNC: Mapping[ClassName, Callable[[Any], AsyncConnection]] = registry.known_classes("async_connections")
_POOLS: Mapping[ClassName, TransactionOpener] = registry.known_classes("pools")
_ASYNC_POOLS: Mapping[ClassName, AsyncTransactionOpener] = registry.known_classes("async_pools")


def run(connection: object, operation: Operation[T], *, instead: str, own_transaction: bool = False) -> T:
    """Run the operation in the connection's transaction; `instead` names the call for connections that are awaited.

    own_transaction: with an engine, a session factory or a pool, run the operation in a transaction of its own and
    commit it; without this flag those are refused.
    Raises InvalidConnectionError for anything that is not an open, blocking connection, and NotInTransactionError if
    the operation's first write would commit by itself. What the driver raises goes to the operation.
    """
    if found := kind_of(connection, _SYNC):
        return found(connection).run(operation)
    if own_transaction and (begin := kind_of(connection, _POOLS)):
        with begin(connection) as opened:
            return run(opened, operation, instead=instead)
    if kind_of(connection, _ASYNC) or (own_transaction and kind_of(connection, _ASYNC_POOLS)):
        raise InvalidConnectionError(f"{_name(connection)} is an async connection; call {instead}")
    raise refusal(connection)


async def arun(connection: object, operation: Operation[T], *, instead: str, own_transaction: bool = False) -> T:
    """`run`, awaited; `instead` names the call for connections that block."""
    if found := kind_of(connection, _ASYNC):
        return await found(connection).arun(operation)
    if own_transaction and (begin := kind_of(connection, _ASYNC_POOLS)):
        async with begin(connection) as opened:
            return await arun(opened, operation, instead=instead)
    if kind_of(connection, _SYNC) or (own_transaction and kind_of(connection, _POOLS)):
        raise InvalidConnectionError(f"{_name(connection)} is not an async connection; call {instead}")
    raise refusal(connection)


def _name(connection: object) -> str:
    return f"{type(connection).__module__}.{type(connection).__qualname__}"
