"""State machines on the SQLite store; fewer steps than in memory, because every step is real."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import pytest

from pillarbox.testing.conformance import StoreHarness
from pillarbox.testing.machines import LaneOwnership, MessageLifecycle, StoreMachine, run_machine
from tests.conformance.harnesses import SqliteHarness
from tests.simulation.bounds import BOUNDED


@pytest.mark.parametrize("machine", [MessageLifecycle, LaneOwnership])
def test_a_random_walk_agrees_with_the_model(machine: type[StoreMachine], tmp_path: Path) -> None:
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

    run_machine(machine, harness, BOUNDED)
