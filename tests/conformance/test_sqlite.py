"""The SQLite store fulfils the contract of all stores."""

from collections.abc import AsyncIterator
from pathlib import Path
from shutil import copyfile

import pytest

from pillarbox.testing.conformance import AdminConformance, StoreConformance
from tests.conformance.harnesses import SqliteHarness


class TestSqliteStore(StoreConformance, AdminConformance):
    @pytest.fixture
    async def harness(self, tmp_path: Path, sqlite_template: Path) -> AsyncIterator[SqliteHarness]:
        copyfile(sqlite_template, tmp_path / "outbox.db")
        harness = SqliteHarness(tmp_path)
        yield harness
        await harness.aclose()
