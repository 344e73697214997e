"""The SQLite store keeps the contract of all stores."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pillarbox.testing.conformance import StoreConformance
from tests.conformance.harnesses import SqliteHarness


class TestSqliteStore(StoreConformance):
    @pytest.fixture
    async def harness(self, tmp_path: Path) -> AsyncIterator[SqliteHarness]:
        harness = SqliteHarness(tmp_path)
        await harness.store.schema.apply()
        yield harness
        await harness.aclose()
