"""State machines on the PostgreSQL store; each run has its own database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pillarbox.testing.conformance import StoreHarness
from pillarbox.testing.machines import LaneOwnership, MessageLife, StoreMachine, walk
from tests.conformance.harnesses import PostgresHarness
from tests.databases import cloned
from tests.servers.postgres import PostgresServer
from tests.simulation.bounds import BOUNDED


@pytest.mark.parametrize("machine", [MessageLife, LaneOwnership])
def test_a_walk(machine: type[StoreMachine], postgres_server: PostgresServer, postgres_template: str) -> None:
    @asynccontextmanager
    async def harness() -> AsyncIterator[StoreHarness]:
        with cloned(postgres_server, postgres_template) as url:
            harness = PostgresHarness(url)
            try:
                yield harness
            finally:
                await harness.aclose()

    walk(machine, harness, BOUNDED)
