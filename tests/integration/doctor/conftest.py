"""A store on its own database, and a plain connection to cause and fix problems."""

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
