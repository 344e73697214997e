"""The MariaDB store fulfils the contract of all stores."""

from collections.abc import AsyncIterator
from contextlib import ExitStack

import pytest

from pillarbox.testing.conformance import AdminConformance, StoreConformance
from tests.conformance.harnesses import MariaDBHarness
from tests.databases import mariadb_database
from tests.servers.mariadb import MariaDBServer


class TestMariaDBStore(StoreConformance, AdminConformance):
    @pytest.fixture
    async def harness(self, mariadb_server: MariaDBServer, mariadb_url: str) -> AsyncIterator[MariaDBHarness]:
        with ExitStack() as databases:
            harness = MariaDBHarness(mariadb_url, lambda: databases.enter_context(mariadb_database(mariadb_server)))
            yield harness
            await harness.aclose()
