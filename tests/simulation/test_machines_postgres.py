"""State machines on the PostgreSQL store; each run has its own database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pillarbox.testing.conformance import StoreHarness
from pillarbox.testing.machines import LaneOwnership, MessageLifecycle, StoreMachine, run_machine
from tests.conformance.harnesses import LowWaterMarksHarness, PostgresHarness
from tests.databases import cloned
from tests.servers.postgres import PostgresServer
from tests.simulation.bounds import BOUNDED


@pytest.mark.parametrize(
    ("machine", "make_harness"),
    [(MessageLifecycle, PostgresHarness), (MessageLifecycle, LowWaterMarksHarness), (LaneOwnership, PostgresHarness)],
)
def test_a_random_walk_agrees_with_the_model(
    machine: type[StoreMachine],
    make_harness: type[PostgresHarness],
    postgres_server: PostgresServer,
    postgres_template: str,
) -> None:
    @asynccontextmanager
    async def harness() -> AsyncIterator[StoreHarness]:
        with cloned(postgres_server, postgres_template) as url:
            harness = make_harness(url)
            try:
                yield harness
            finally:
                await harness.aclose()

    run_machine(machine, harness, BOUNDED)
