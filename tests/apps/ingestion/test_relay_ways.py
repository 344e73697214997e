"""The relay inside the service and the one beside it are the same; and the service without either."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from apps.ingestion import topology
from apps.ingestion.publisher import Publisher
from apps.ingestion.relay import open_broker
from pillarbox.core.clock import system_chance
from pillarbox.ops.settings import Settings
from tests.apps.ingestion.running import BOUND, ROOT, Running, Service
from tests.integration.cli.running import fresh_pillarbox
from tests.integration.consume.broker import ready
from tests.servers.ports import free_port
from tests.servers.waiting import wait_until
from tests.unit.ops.settings.loading import load

FILE = ROOT / "apps" / "ingestion" / "pillarbox.toml"


@pytest.fixture(scope="module")
def file() -> Settings:
    return load(FILE)


def test_both_look_as_often_and_try_as_long(file: Settings) -> None:
    inside = Publisher()
    assert file.relay.config == replace(inside.config, poll_interval="2s")
    assert (inside.config.enabled, inside.config.poll_interval, inside.config.batch_size) == (True, 2, 50)
    for policy in (file.relay.policy, inside.retry):
        delays = [policy.delay(attempt, system_chance()) for attempt in range(1, 12)]
        assert delays == [10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, None]


def test_the_variables_of_the_publisher_reach_both() -> None:
    publisher = Publisher(
        polling_interval=0.25,
        batch_size=7,
        max_retries=2,
        initial_retry_delay=1.5,
        max_retry_delay=60,
        outages="count",
        fixed_delay=True,
    )
    beside = load(FILE, **publisher.as_relay_settings)
    assert beside.relay.config == replace(publisher.config, poll_interval="0.25s")
    for policy in (beside.relay.policy, publisher.retry):
        assert [policy.delay(attempt, system_chance()) for attempt in range(1, 4)] == [1.5, 3, None]


def test_both_send_the_same_to_the_same_places(file: Settings) -> None:
    routes = [(route.event_type, tuple(route.to)) for route in file.routes]
    assert routes == [(route.event_type, tuple(route.to)) for route in topology.ROUTES]
    places = {name: (given.exchange, given.routing_key) for name, given in file.destinations.items()}
    assert places == {name: (to.exchange, to.routing_key) for name, to in topology.DESTINATIONS.items()}


def test_beside_the_service_a_relay_of_its_own_carries_what_is_uploaded(
    database: str, broker: str, tmp_path: Path
) -> None:
    variables = {"INGESTION_STORE": database, "INGESTION_TRANSPORT": broker, "INGESTION_RELAY": "beside"}
    with Service(folder=tmp_path, **variables) as service:
        service.upload()
        health = service.client.get("/health")
        assert (health.status_code, health.json()["reason"]) == (503, "no relay is at work")
        done = fresh_pillarbox(
            *("--config", str(FILE), "relay", "--until-empty"),
            cwd=tmp_path,
            PILLARBOX_STORE=database,
            PILLARBOX_TRANSPORT=broker,
        )
        assert done.returncode == 0, done.stderr
        assert service.client.get("/health").json()["backlog"] == 0
    assert ready(broker, "document.uploaded.q") == 1
    # The broker refuses a second declaration that differs from the first in anything.
    asyncio.run(declare_as_inside(broker))


def test_the_relay_beside_the_service_has_its_database_and_broker_whatever_another_application_names(
    database: str, broker: str, tmp_path: Path
) -> None:
    variables = {"INGESTION_STORE": database, "INGESTION_TRANSPORT": broker, "INGESTION_RELAY": "beside"}
    foreign = {
        "PILLARBOX_STORE": f"postgresql://app@127.0.0.1:{free_port()}/notifications",
        "PILLARBOX_TRANSPORT": f"amqp://guest:guest@127.0.0.1:{free_port()}/",
    }
    with Service(folder=tmp_path, **variables) as service:
        service.upload()
        relay = Running("relay", tmp_path, variables | foreign | {"INGESTION_METRICS": "off"})
        wait_until(lambda: ready(broker, "document.uploaded.q") == 1, bound=BOUND, what="the event is published")
        assert relay.stop() == 0


async def declare_as_inside(url: str) -> None:
    broker = open_broker(url)
    try:
        await broker.declare_topology()
    finally:
        await broker.aclose()


def test_without_a_broker_the_relay_inside_calls_the_consumers(store: str, tmp_path: Path) -> None:
    with Service(folder=tmp_path, INGESTION_STORE=store) as service:
        documents = [service.upload().json()["id"] for _ in range(3)]
        for document_id in documents:
            service.wait_for(document_id, "ENRICHED")
        assert service.stop() == 0
    assert "Relay stopped, drained" in service.story()


@pytest.mark.parametrize("way", ["inside", "off"])
def test_the_topology_is_there_before_the_first_event(way: str, database: str, broker: str, tmp_path: Path) -> None:
    variables = {"INGESTION_STORE": database, "INGESTION_TRANSPORT": broker, "INGESTION_RELAY": way}
    with Service(folder=tmp_path, **variables) as service:
        wait_until(lambda: service.says("declared"), bound=BOUND, what="the topology is declared")
    for queue in topology.QUEUES:
        assert queue.dead_letter is not None
        assert [ready(broker, name) for name in (queue.name, queue.dead_letter.queue)] == [0, 0]


@pytest.mark.parametrize("way", ["inside", "off"])
def test_a_broker_that_is_not_there_yet_is_named_at_once_and_waited_for(
    way: str, database: str, tmp_path: Path
) -> None:
    nowhere = f"amqp://guest:guest@127.0.0.1:{free_port()}/"
    variables = {"INGESTION_STORE": database, "INGESTION_TRANSPORT": nowhere, "INGESTION_RELAY": way}
    with Service(folder=tmp_path, **variables) as service:
        wait_until(lambda: service.says("RabbitMQ cannot be reached, trying again"), bound=BOUND, what="it says so")
        assert service.upload().status_code == 201
