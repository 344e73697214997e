"""A URL with a driver of SQLAlchemy names the same database without it."""

from pathlib import Path

import pytest

from pillarbox import ConfigurationError, open_store
from pillarbox.database_urls import plain_url
from pillarbox.stores.mariadb import MariaDBStore
from pillarbox.stores.postgres import PostgresStore
from pillarbox.stores.sqlite import SqliteStore


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        ("postgresql+asyncpg://app:p%40ss@db:5432/shop", "postgresql://app:p%40ss@db:5432/shop"),
        ("postgresql+psycopg://db/shop?sslmode=require", "postgresql://db/shop?sslmode=require"),
        ("postgresql+asyncpg://db/shop?ssl=require", "postgresql://db/shop?sslmode=require"),
        ("postgresql+asyncpg://db/shop?prepared_statement_cache_size=0", "postgresql://db/shop"),
        ("postgres+psycopg2://db/shop?application_name=a%20b", "postgres://db/shop?application_name=a%20b"),
        ("mysql+pymysql://app@db/shop?charset=utf8mb4", "mysql://app@db/shop"),
        ("mariadb+asyncmy://app@db/shop?ssl_ca=/etc/ca.pem", "mariadb://app@db/shop?ssl_ca=/etc/ca.pem"),
        ("postgresql://db/shop?connect_timeout=3&sslmode=require&keepalives=1", "postgresql://db/shop?sslmode=require"),
        ("postgresql+psycopg://db/shop?gssencmode=disable&channel_binding=prefer", "postgresql://db/shop"),
        ("sqlite+aiosqlite:///shop.db", "sqlite:///shop.db"),
        ("sqlite+aiosqlite:////var/lib/shop.db", "sqlite:////var/lib/shop.db"),
    ],
)
def test_what_only_another_client_understands_is_left_out(given: str, plain: str) -> None:
    assert plain_url(given) == plain
    assert plain_url(plain) == plain


@pytest.mark.parametrize(
    "url",
    [
        "oracle+cx://db/shop",
        "postgresql://db/shop?ssl=1",
        "mariadb://db/shop?charset=utf8",
        "memory://",
        "a+b",
        "",
        "+://",
    ],
)
def test_other_urls_stay_as_they_are(url: str) -> None:
    assert plain_url(url) == url


def test_a_requirement_is_not_left_out() -> None:
    with pytest.raises(ConfigurationError, match="channel_binding=require, which the driver cannot do; remove it"):
        PostgresStore("postgresql+psycopg://db/shop?sslmode=require&channel_binding=require")


def test_every_store_takes_a_url_with_a_driver(tmp_path: Path) -> None:
    assert isinstance(open_store("postgresql+asyncpg://app@127.0.0.1/shop"), PostgresStore)
    assert isinstance(open_store("mysql+pymysql://app@127.0.0.1/shop"), MariaDBStore)
    assert isinstance(open_store(f"sqlite+aiosqlite:///{tmp_path}/shop.db"), SqliteStore)
