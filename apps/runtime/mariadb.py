"""SQLAlchemy on MariaDB, for the same URL as the store: its parameters for TLS mean the same on both.

Invariant: no session depends on the configuration of the server. Times are in UTC, and a value that does not fit is an
error.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, make_url, text
from sqlalchemy.exc import ArgumentError

from pillarbox import ConfigurationError
from pillarbox.stores.mariadb.tls import MariaDBAddress, address_of

DRIVER = "mariadb+pymysql"
ISOLATION = "READ COMMITTED"
"""A transaction that waited for another sees what that one committed."""
SETTINGS = (
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO,"
    "NO_ENGINE_SUBSTITUTION', SESSION time_zone = '+00:00', SESSION wait_timeout = 31536000"
)
LOCK_SECONDS = 300


def open_mariadb_engine(url: str | URL, **options: Any) -> Engine:
    """An engine, which connects on first use. Raises ConfigurationError for an invalid URL.

    options: of `create_engine`.
    """
    parsed = url if isinstance(url, URL) else _parsed(url)
    address = address_of(parsed.set(drivername="mariadb").render_as_string(hide_password=False))
    return create_engine(
        parsed.set(drivername=DRIVER), creator=lambda: _connect(address), isolation_level=ISOLATION, **options
    )


def lock_migrations(connection: Connection, name: str) -> None:
    """Wait until no other session migrates these tables; the lock is released with the connection. Raises
    TimeoutError."""
    lock = text("SELECT GET_LOCK(CONCAT(DATABASE(), :name), :seconds)")
    if connection.scalar(lock, {"name": f".{name}", "seconds": LOCK_SECONDS}) != 1:
        raise TimeoutError(f"another process has been migrating the tables for {LOCK_SECONDS} s")


def _parsed(url: str) -> URL:
    try:
        return make_url(url)
    except ArgumentError:
        raise ConfigurationError("the database's URL cannot be read; write mariadb://user@host:3306/database") from None


def _connect(address: MariaDBAddress) -> Any:
    # Imported here, because the applications run without the driver on other databases.
    import pymysql
    from pymysql.constants import CLIENT

    context = address.context()
    return pymysql.connect(
        host=address.host,
        port=address.port,
        user=address.user,
        password=address.password,
        database=address.database,
        unix_socket=address.unix_socket,
        ssl=context,
        ssl_disabled=context is None,
        charset="utf8mb4",
        connect_timeout=5,
        client_flag=CLIENT.FOUND_ROWS,  # as SQLAlchemy expects it of its connections
        init_command=SETTINGS,
    )
