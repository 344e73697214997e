"""State machines on the MariaDB store; each run has its own database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pillarbox.testing.conformance import StoreHarness
from pillarbox.testing.machines import LaneOwnership, MessageLifecycle, StoreMachine, run_machine
from tests.conformance.harnesses import MariaDBHarness
from tests.databases import mariadb_database
from tests.servers.mariadb import MariaDBServer
from tests.simulation.bounds import BOUNDED


@pytest.mark.parametrize("machine", [MessageLifecycle, LaneOwnership])
def test_a_random_walk_agrees_with_the_model(machine: type[StoreMachine], mariadb_server: MariaDBServer) -> None:
    @asynccontextmanager
    async def harness() -> AsyncIterator[StoreHarness]:
        with mariadb_database(mariadb_server) as url:
            harness = MariaDBHarness(url)
            await harness.store.schema.apply()
            try:
                yield harness
            finally:
                await harness.aclose()

    run_machine(machine, harness, BOUNDED)
