"""State machines on the SQLite store; fewer steps than in memory, because every step is real."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import pytest

from pillarbox.testing.conformance import StoreHarness
from pillarbox.testing.machines import LaneOwnership, MessageLife, StoreMachine, walk
from tests.conformance.harnesses import SqliteHarness
from tests.simulation.bounds import BOUNDED


@pytest.mark.parametrize("machine", [MessageLife, LaneOwnership])
def test_a_walk(machine: type[StoreMachine], tmp_path: Path) -> None:
    folders = (tmp_path / str(number) for number in count())

    @asynccontextmanager
    async def harness() -> AsyncIterator[StoreHarness]:
        folder = next(folders)
        folder.mkdir()
        harness = SqliteHarness(folder)
        try:
            await harness.store.schema.apply()
            yield harness
        finally:
            await harness.aclose()

    walk(machine, harness, BOUNDED)
