"""A database that crashes and comes back: the relays wait for it, and what was confirmed is settled afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.databases import cloned, make_template
from tests.faults.conftest import MakeStage
from tests.faults.relays import IN_HAND
from tests.faults.stage import Stage, assert_nothing_lost
from tests.servers.availability import available
from tests.servers.postgres import PostgresServer
from tests.servers.rabbitmq import RabbitMQServer

EVENTS = 3_000
RELAYS = 2


@pytest.fixture
def database() -> Iterator[PostgresServer]:
    """A database server to be tormented."""
    with available(lambda: PostgresServer(durable=False)) as server:
        yield server


@pytest.fixture
def shaky(make_stage: MakeStage, database: PostgresServer, rabbitmq_server: RabbitMQServer) -> Iterator[Stage]:
    with cloned(database, asyncio.run(make_template(database))) as url:
        yield make_stage(store=url, transport=rabbitmq_server.url())


def crash_at_work(stage: Stage, database: PostgresServer) -> None:
    stage.write(EVENTS)
    stage.wait_until(lambda: all(stage.at_work(relay) for relay in stage.relays), what="all are at work")
    database.restart("immediate")
    stage.write(EVENTS)


def test_a_database_that_crashes_under_load(shaky: Stage, database: PostgresServer) -> None:
    relays = [shaky.start() for _ in range(RELAYS)]
    shaky.wait_until(lambda: all(shaky.lanes_of(relay) == 32 for relay in relays), what="both have their share")
    crash_at_work(shaky, database)
    shaky.wait_drained()
    assert all(relay.running for relay in relays)
    assert_nothing_lost(shaky.judge(), most_duplicates=RELAYS * IN_HAND)


def test_a_database_that_crashes_while_lanes_change_hands(shaky: Stage, database: PostgresServer) -> None:
    for _ in range(RELAYS):
        shaky.start()
    crash_at_work(shaky, database)
    shaky.wait_drained(bound=15)
    assert_nothing_lost(shaky.judge(), most_duplicates=RELAYS * IN_HAND)
