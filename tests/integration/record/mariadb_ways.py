"""Connections of the drivers of MariaDB: PyMySQL, mysqlclient and asyncmy."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from typing import Any

import asyncmy
import pymysql
from pymysql.cursors import DictCursor

from pillarbox.stores.mariadb.tls import address_of
from tests.integration.record.way import Open, Way, blocking
from tests.servers.availability import available
from tests.servers.mysqlclient import mysqlclient


def connect_arguments(url: str) -> dict[str, Any]:
    """What both drivers take."""
    address = address_of(url)
    return {
        "host": address.host,
        "port": address.port,
        "user": address.user,
        "password": address.password,
        "database": address.database,
    }


@contextmanager
def pymysql_connection(url: str, **options: Any) -> Iterator[Any]:
    connection: Any = pymysql.connect(**connect_arguments(url), **options)
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def mysqlclient_connection(url: str, **options: Any) -> Iterator[Any]:
    with closing(available(mysqlclient).connect(**connect_arguments(url), **options)) as connection:
        yield connection


@contextmanager
def mysqlclient_with_dicts(url: str) -> Iterator[Any]:
    dicts = available(mysqlclient).cursors.SSDictCursor
    with mysqlclient_connection(url, cursorclass=dicts) as connection:
        yield connection


def _opened(connect: Callable[..., Any], *, begun: bool = False, **options: Any) -> Open:
    @asynccontextmanager
    async def opened(url: str) -> AsyncIterator[Any]:
        with connect(url, **options) as connection:
            if begun:
                connection.begin()
            try:
                yield connection
            except BaseException:
                connection.rollback()
                raise
            connection.commit()

    return opened


def _autocommit(url: str) -> Any:
    return pymysql_connection(url, autocommit=True)


def _mysqlclient_autocommit(url: str) -> Any:
    return mysqlclient_connection(url, autocommit=True)


@asynccontextmanager
async def asyncmy_connection(url: str, **options: Any) -> AsyncIterator[Any]:
    connection: Any = await asyncmy.connect(**connect_arguments(url), **options)
    try:
        yield connection
    finally:
        await connection.ensure_closed()


def _asyncmy(*, begun: bool = False, **options: Any) -> Open:
    @asynccontextmanager
    async def opened(url: str) -> AsyncIterator[Any]:
        async with asyncmy_connection(url, **options) as connection:
            if begun:
                await connection.begin()
            try:
                yield connection
            except BaseException:
                await connection.rollback()
                raise
            await connection.commit()

    return opened


@asynccontextmanager
async def _asyncmy_pool(url: str) -> AsyncIterator[Any]:
    async with (
        asyncmy.create_pool(**connect_arguments(url), minsize=1, maxsize=1) as pool,
        pool.acquire() as connection,
    ):
        await connection.begin()
        try:
            yield connection
        except BaseException:
            await connection.rollback()
            raise
        await connection.commit()


def _asyncmy_autocommit(url: str) -> Any:
    return asyncmy_connection(url, autocommit=True)


@asynccontextmanager
async def _savepoint(connection: Any) -> AsyncIterator[None]:
    with connection.cursor() as cursor:
        cursor.execute("SAVEPOINT inner_one")
        try:
            yield
        except BaseException:
            cursor.execute("ROLLBACK TO inner_one")
            raise
        finally:
            cursor.execute("RELEASE SAVEPOINT inner_one")


@asynccontextmanager
async def _asyncmy_savepoint(connection: Any) -> AsyncIterator[None]:
    async with connection.cursor() as cursor:
        await cursor.execute("SAVEPOINT inner_one")
        try:
            yield
        except BaseException:
            await cursor.execute("ROLLBACK TO inner_one")
            raise
        finally:
            await cursor.execute("RELEASE SAVEPOINT inner_one")


MARIADB = [
    *(
        Way(name=name, transaction=transaction, savepoint=_savepoint, autocommit=blocking(_autocommit))
        for name, transaction in (
            ("PyMySQL Connection", _opened(pymysql_connection)),
            ("PyMySQL Connection with dicts as rows", _opened(pymysql_connection, cursorclass=DictCursor)),
            ("PyMySQL Connection in autocommit, begin()", _opened(pymysql_connection, begun=True, autocommit=True)),
            (
                "PyMySQL Connection without backslash escapes",
                _opened(pymysql_connection, sql_mode="ANSI,NO_BACKSLASH_ESCAPES"),
            ),
        )
    ),
    *(
        Way(name=name, transaction=transaction, savepoint=_savepoint, autocommit=blocking(_mysqlclient_autocommit))
        for name, transaction in (
            ("mysqlclient Connection", _opened(mysqlclient_connection)),
            ("mysqlclient Connection with dicts as rows, not buffered", _opened(mysqlclient_with_dicts)),
            (
                "mysqlclient Connection in autocommit, begin()",
                _opened(mysqlclient_connection, begun=True, autocommit=True),
            ),
            (
                "mysqlclient Connection without backslash escapes",
                _opened(mysqlclient_connection, sql_mode="ANSI,NO_BACKSLASH_ESCAPES"),
            ),
        )
    ),
    *(
        Way(
            name=name,
            transaction=transaction,
            savepoint=_asyncmy_savepoint,
            autocommit=_asyncmy_autocommit,
            awaited=True,
        )
        for name, transaction in (
            ("asyncmy Connection", _asyncmy()),
            ("asyncmy Connection in autocommit, begin()", _asyncmy(begun=True, autocommit=True)),
            ("asyncmy from a pool", _asyncmy_pool),
        )
    ),
]
