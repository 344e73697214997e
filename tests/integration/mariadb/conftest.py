"""A store on its own database, and plain connections."""

from collections.abc import AsyncIterator

import pytest

from pillarbox.stores.mariadb import MariaDBStore
from tests.integration.mariadb.session import Session


@pytest.fixture
async def store(mariadb_url: str) -> AsyncIterator[MariaDBStore]:
    store = MariaDBStore(mariadb_url)
    yield store
    await store.aclose()


@pytest.fixture
async def other_store(mariadb_url: str) -> AsyncIterator[MariaDBStore]:
    store = MariaDBStore(mariadb_url)
    yield store
    await store.aclose()


@pytest.fixture
async def sql(mariadb_url: str) -> AsyncIterator[Session]:
    async with Session(mariadb_url) as session:
        yield session


@pytest.fixture
async def other_session(mariadb_url: str) -> AsyncIterator[Session]:
    """A second plain connection, for tests that hold a lock."""
    async with Session(mariadb_url) as session:
        yield session
