"""A store on a database of its own, and a plain connection to break and to mend things with."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from pillarbox.stores.postgres import PostgresStore
from tests.databases import Sql


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(postgres_url)
    yield store
    await store.aclose()


@pytest.fixture
async def sql(postgres_url: str) -> AsyncIterator[Sql]:
    connection = await asyncpg.connect(postgres_url)
    yield connection
    await connection.close()
