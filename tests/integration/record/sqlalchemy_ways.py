"""Connections of SQLAlchemy on every driver, blocking and awaited."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.ext.asyncio import (
    AsyncConnection,
    AsyncEngine,
    AsyncSession,
    async_scoped_session,
    async_sessionmaker,
    create_async_engine,
)
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from tests.integration.record.way import Open, Way, blocking
from tests.servers.availability import available
from tests.servers.mysqlclient import mysqlclient

Configure = Callable[[Any], None]


def begin_by_event(engine: Any) -> None:
    """SQLAlchemy's documented recipe for SQLite: the driver never begins, an event does."""
    engine = getattr(engine, "sync_engine", engine)

    @event.listens_for(engine, "connect")
    def never_begin(connection: Any, _record: object) -> None:
        connection.isolation_level = None

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN")


@contextmanager
def engine_for(url: str, driver: str, configure: Configure | None = None, **options: Any) -> Iterator[Engine]:
    if driver == "mysqldb":
        available(mysqlclient)
    engine = create_engine(_with_driver(url, driver), **options)
    if configure:
        configure(engine)
    try:
        yield engine
    finally:
        engine.dispose()


@asynccontextmanager
async def async_engine_for(
    url: str, driver: str, configure: Configure | None = None, **options: Any
) -> AsyncIterator[AsyncEngine]:
    engine = create_async_engine(_with_driver(url, driver), **options)
    if configure:
        configure(engine)
    try:
        yield engine
    finally:
        await engine.dispose()


def _with_driver(url: str, driver: str) -> str:
    if "sqlite" in driver:
        return f"sqlite+{driver}:///{url}"
    if url.startswith("mariadb://"):
        return url.replace("mariadb://", f"{'mysql' if driver == 'asyncmy' else 'mariadb'}+{driver}://")
    return url.replace("postgresql://", f"postgresql+{driver}://")


class OwnSession(Session):
    """What SQLModel does: a subclass."""


def _session(url: str, driver: str, configure: Configure | None, **options: Any) -> Any:
    @contextmanager
    def opened() -> Iterator[Session]:
        with engine_for(url, driver, configure, **options) as engine, OwnSession(engine) as session, session.begin():
            yield session

    return opened()


def _scoped_session(url: str, driver: str, configure: Configure | None, **options: Any) -> Any:
    @contextmanager
    def opened() -> Iterator[scoped_session[Session]]:
        with engine_for(url, driver, configure, **options) as engine:
            scoped = scoped_session(sessionmaker(engine))
            with scoped.begin():
                yield scoped
            scoped.remove()

    return opened()


def _connection(url: str, driver: str, configure: Configure | None, **options: Any) -> Any:
    @contextmanager
    def opened() -> Iterator[Connection]:
        with engine_for(url, driver, configure, **options) as engine, engine.begin() as connection:
            yield connection

    return opened()


def _unbegun_connection(url: str, driver: str, configure: Configure | None, **options: Any) -> Any:
    """Begins with its first statement and is committed by hand."""

    @contextmanager
    def opened() -> Iterator[Connection]:
        with engine_for(url, driver, configure, **options) as engine, engine.connect() as connection:
            yield connection
            connection.commit()

    return opened()


def _async_session(url: str, driver: str, configure: Configure | None, **options: Any) -> Any:
    @asynccontextmanager
    async def opened() -> AsyncIterator[AsyncSession]:
        async with (
            async_engine_for(url, driver, configure, **options) as engine,
            AsyncSession(engine) as session,
            session.begin(),
        ):
            yield session

    return opened()


def _async_scoped_session(url: str, driver: str, configure: Configure | None, **options: Any) -> Any:
    @asynccontextmanager
    async def opened() -> AsyncIterator[async_scoped_session[AsyncSession]]:
        async with async_engine_for(url, driver, configure, **options) as engine:
            scoped = async_scoped_session(async_sessionmaker(engine), scopefunc=lambda: "one scope")
            try:
                async with scoped.begin():
                    yield scoped
            finally:
                await scoped.remove()

    return opened()


def _async_connection(url: str, driver: str, configure: Configure | None, **options: Any) -> Any:
    @asynccontextmanager
    async def opened() -> AsyncIterator[AsyncConnection]:
        async with async_engine_for(url, driver, configure, **options) as engine, engine.begin() as connection:
            yield connection

    return opened()


@asynccontextmanager
async def _awaited_savepoint(connection: Any) -> AsyncIterator[None]:
    async with connection.begin_nested():
        yield


def _sqlalchemy(kind: str, opened: Any, driver: str, configure: Configure | None = None) -> Way:
    awaited = kind.lower().startswith("async")

    def with_options(**options: Any) -> Open:
        def open_(url: str) -> Any:
            return opened(url, driver, configure, **options)

        return open_ if awaited else blocking(open_)

    # The recipe's listener would begin even here; AUTOCOMMIT is for those who do without it.
    autocommit = _without_recipe(opened, driver, awaited) if configure else with_options(isolation_level="AUTOCOMMIT")
    return Way(
        name=f"{kind} on {driver}" + (" begun by an event" if configure else ""),
        transaction=with_options(),
        savepoint=_awaited_savepoint if awaited else _blocking_savepoint,
        autocommit=autocommit,
        awaited=awaited,
    )


def _without_recipe(opened: Any, driver: str, awaited: bool) -> Open:
    def never_begin(engine: Any) -> None:
        @event.listens_for(getattr(engine, "sync_engine", engine), "connect")
        def set_level(connection: Any, _record: object) -> None:
            connection.isolation_level = None

    def open_(url: str) -> Any:
        return opened(url, driver, never_begin)

    return open_ if awaited else blocking(open_)


@asynccontextmanager
async def _blocking_savepoint(connection: Any) -> AsyncIterator[None]:
    with connection.begin_nested():
        yield


POSTGRES = [
    _sqlalchemy("Session", _session, "psycopg"),
    _sqlalchemy("Session", _session, "psycopg2"),
    _sqlalchemy("scoped_session", _scoped_session, "psycopg"),
    _sqlalchemy("Connection", _connection, "psycopg"),
    _sqlalchemy("Connection", _connection, "psycopg2"),
    _sqlalchemy("Connection, unbegun,", _unbegun_connection, "psycopg"),
    _sqlalchemy("AsyncSession", _async_session, "asyncpg"),
    _sqlalchemy("AsyncSession", _async_session, "psycopg"),
    _sqlalchemy("async_scoped_session", _async_scoped_session, "asyncpg"),
    _sqlalchemy("AsyncConnection", _async_connection, "asyncpg"),
    _sqlalchemy("AsyncConnection", _async_connection, "psycopg"),
]

SQLITE = [
    _sqlalchemy("Session", _session, "pysqlite"),
    _sqlalchemy("Session", _session, "pysqlite", begin_by_event),
    _sqlalchemy("scoped_session", _scoped_session, "pysqlite"),
    _sqlalchemy("Connection", _connection, "pysqlite"),
    _sqlalchemy("Connection, unbegun,", _unbegun_connection, "pysqlite"),
    _sqlalchemy("Connection, unbegun,", _unbegun_connection, "pysqlite", begin_by_event),
    _sqlalchemy("AsyncSession", _async_session, "aiosqlite"),
    _sqlalchemy("AsyncSession", _async_session, "aiosqlite", begin_by_event),
    _sqlalchemy("AsyncConnection", _async_connection, "aiosqlite"),
    _sqlalchemy("AsyncConnection", _async_connection, "aiosqlite", begin_by_event),
]

MARIADB = [
    _sqlalchemy("Session", _session, "pymysql"),
    _sqlalchemy("scoped_session", _scoped_session, "pymysql"),
    _sqlalchemy("Connection", _connection, "pymysql"),
    _sqlalchemy("Connection, unbegun,", _unbegun_connection, "pymysql"),
    _sqlalchemy("Session", _session, "mysqldb"),
    _sqlalchemy("Connection", _connection, "mysqldb"),
    _sqlalchemy("Connection, unbegun,", _unbegun_connection, "mysqldb"),
    _sqlalchemy("AsyncSession", _async_session, "asyncmy"),
    _sqlalchemy("async_scoped_session", _async_scoped_session, "asyncmy"),
    _sqlalchemy("AsyncConnection", _async_connection, "asyncmy"),
]
