"""The PostgreSQL store keeps the contract of all stores."""

from collections.abc import AsyncIterator

import pytest

from pillarbox.testing.conformance import StoreConformance
from tests.conformance.harnesses import PostgresHarness


class TestPostgresStore(StoreConformance):
    @pytest.fixture
    async def harness(self, postgres_url: str, empty_postgres_url: str) -> AsyncIterator[PostgresHarness]:
        harness = PostgresHarness(postgres_url, empty_postgres_url)
        yield harness
        await harness.aclose()
