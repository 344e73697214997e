"""A database crashes and restarts: the relays wait for it, and settle afterwards what was confirmed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.databases import cloned, make_template
from tests.faults.conftest import MakeStage
from tests.faults.relays import MAX_IN_FLIGHT, RelayProcess
from tests.faults.stage import Stage, assert_sound
from tests.servers.availability import available
from tests.servers.postgres import PostgresServer
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.waiting import wait_until

EVENTS = 4_000
FEW = 500


@pytest.fixture
def database() -> Iterator[PostgresServer]:
    """A database server that tests may kill."""
    with available(lambda: PostgresServer(durable=False)) as server:
        yield server


@pytest.fixture
def shaky(make_stage: MakeStage, database: PostgresServer, rabbitmq_server: RabbitMQServer) -> Iterator[Stage]:
    with cloned(database, asyncio.run(make_template(database))) as url:
        yield make_stage(store=url, transport=rabbitmq_server.url())


def start_slowly(stage: Stage) -> RelayProcess:
    """Settings of a relay with few messages in flight, so that its work lasts."""
    return stage.start({"RELAY__BATCH_SIZE": "10"})


def shares(stage: Stage) -> list[int]:
    return [stage.lanes_of(relay) for relay in stage.relays]


def crash_at_work(stage: Stage, database: PostgresServer) -> None:
    """Kill the database during the work of the relays, until every relay has noticed."""
    stage.wait_until(lambda: all(relay.said("delivered event") for relay in stage.relays), what="all are at work")
    database.stop("immediate")
    wait_until(lambda: all(relay.said("store failed") for relay in stage.relays), bound=60, what="all have noticed")
    database.start()
    assert stage.waiting() > 0
    stage.write(FEW)
    stage.wait_drained()
    assert all(relay.running for relay in stage.relays)
    assert stage.counted() == 0


def test_a_database_that_crashes_under_load(shaky: Stage, database: PostgresServer) -> None:
    shaky.write(EVENTS)
    relays = [start_slowly(shaky), start_slowly(shaky)]
    crash_at_work(shaky, database)
    assert_sound(shaky.check(), duplicates=range(len(relays) * MAX_IN_FLIGHT + 1))


def test_a_database_that_crashes_while_lanes_change_owners(shaky: Stage, database: PostgresServer) -> None:
    shaky.write(EVENTS)
    first = start_slowly(shaky)
    shaky.wait_until(lambda: shaky.lanes_of(first) == 64, what="one has every lane")
    start_slowly(shaky)
    assert shares(shaky) != [32, 32]
    crash_at_work(shaky, database)
    shaky.wait_until(lambda: shares(shaky) == [32, 32], what="each has its share")
    assert_sound(shaky.check(), duplicates=range(2 * MAX_IN_FLIGHT + 1))
