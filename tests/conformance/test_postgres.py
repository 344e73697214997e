"""The PostgreSQL store fulfils the contract of all stores."""

from collections.abc import AsyncIterator
from contextlib import ExitStack

import pytest

from pillarbox.testing.conformance import AdminConformance, StoreConformance
from tests.conformance.harnesses import PostgresHarness
from tests.databases import cloned
from tests.servers.postgres import PostgresServer


class TestPostgresStore(StoreConformance, AdminConformance):
    @pytest.fixture
    async def harness(self, postgres_server: PostgresServer, postgres_url: str) -> AsyncIterator[PostgresHarness]:
        with ExitStack() as databases:
            harness = PostgresHarness(postgres_url, lambda: databases.enter_context(cloned(postgres_server, None)))
            yield harness
            await harness.aclose()
