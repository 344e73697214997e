"""The embedded and the separate relay have the same configuration; and the service without a relay."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from apps.ingestion import topology
from apps.ingestion.publisher import Publisher
from apps.ingestion.relay import open_broker
from pillarbox.core.clock import system_rng
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


def test_both_relays_have_the_same_intervals_and_retries(file: Settings) -> None:
    embedded = Publisher()
    assert file.relay.config == replace(embedded.config, poll_interval="2s")
    assert (embedded.config.enabled, embedded.config.poll_interval, embedded.config.batch_size) == (True, 2, 50)
    for policy in (file.relay.policy, embedded.retry):
        delays = [policy.delay_after(attempt, system_rng()) for attempt in range(1, 12)]
        assert delays == [10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, None]


def test_the_variables_of_the_publisher_configure_both_relays() -> None:
    publisher = Publisher(
        polling_interval=0.25,
        batch_size=7,
        max_retries=2,
        initial_retry_delay=1.5,
        max_retry_delay=60,
        outages="count",
        fixed_delay=True,
    )
    separate = load(FILE, **publisher.as_relay_settings)
    assert separate.relay.config == replace(publisher.config, poll_interval="0.25s")
    for policy in (separate.relay.policy, publisher.retry):
        assert [policy.delay_after(attempt, system_rng()) for attempt in range(1, 4)] == [1.5, 3, None]


def test_both_relays_have_the_same_routes_and_destinations(file: Settings) -> None:
    routes = [(route.event_type, tuple(route.to)) for route in file.routes]
    assert routes == [(route.event_type, tuple(route.to)) for route in topology.ROUTES]
    found = {name: (given.rabbitmq.exchange, given.rabbitmq.routing_key) for name, given in file.destinations.items()}
    assert found == {name: (to.exchange, to.routing_key) for name, to in topology.DESTINATIONS.items()}


def test_a_separate_relay_publishes_uploads(database: str, broker: str, tmp_path: Path) -> None:
    variables = {"INGESTION_STORE": database, "INGESTION_TRANSPORT": broker, "INGESTION_RELAY": "separate"}
    with Service(folder=tmp_path, **variables) as service:
        service.upload()
        health = service.client.get("/health")
        assert (health.status_code, health.json()["reason"]) == (503, "no relay is running")
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
    asyncio.run(declare_as_embedded(broker))


def test_a_separate_relay_ignores_the_servers_of_another_application(
    database: str, broker: str, tmp_path: Path
) -> None:
    variables = {"INGESTION_STORE": database, "INGESTION_TRANSPORT": broker, "INGESTION_RELAY": "separate"}
    foreign = {
        "PILLARBOX_STORE": f"postgresql://app@127.0.0.1:{free_port()}/notifications",
        "PILLARBOX_TRANSPORT": f"amqp://guest:guest@127.0.0.1:{free_port()}/",
    }
    with Service(folder=tmp_path, **variables) as service:
        service.upload()
        relay = Running("relay", tmp_path, variables | foreign | {"INGESTION_METRICS": "off"})
        wait_until(lambda: ready(broker, "document.uploaded.q") == 1, bound=BOUND, what="the event is published")
        assert relay.stop() == 0


async def declare_as_embedded(url: str) -> None:
    broker = open_broker(url)
    try:
        await broker.declare_topology()
    finally:
        await broker.aclose()


def test_without_a_broker_the_embedded_relay_calls_the_consumers(store: str, tmp_path: Path) -> None:
    with Service(folder=tmp_path, INGESTION_STORE=store) as service:
        documents = [service.upload().json()["id"] for _ in range(3)]
        for document_id in documents:
            service.wait_for(document_id, "ENRICHED")
        assert service.stop() == 0
    assert "Relay stopped, drained" in service.log_text()


@pytest.mark.parametrize("mode", ["embedded", "off"])
def test_the_topology_is_declared_before_the_first_event(mode: str, database: str, broker: str, tmp_path: Path) -> None:
    variables = {"INGESTION_STORE": database, "INGESTION_TRANSPORT": broker, "INGESTION_RELAY": mode}
    with Service(folder=tmp_path, **variables) as service:
        wait_until(lambda: service.has_logged("declared"), bound=BOUND, what="the topology is declared")
    for queue in topology.QUEUES:
        assert queue.dead_letter is not None
        assert [ready(broker, name) for name in (queue.name, queue.dead_letter.queue)] == [0, 0]


@pytest.mark.parametrize("mode", ["embedded", "off"])
def test_the_service_logs_and_waits_for_a_broker_that_starts_later(mode: str, database: str, tmp_path: Path) -> None:
    nowhere = f"amqp://guest:guest@127.0.0.1:{free_port()}/"
    variables = {"INGESTION_STORE": database, "INGESTION_TRANSPORT": nowhere, "INGESTION_RELAY": mode}
    with Service(folder=tmp_path, **variables) as service:
        wait_until(lambda: service.has_logged("RabbitMQ is unavailable, retrying"), bound=BOUND, what="the log line")
        assert service.upload().status_code == 201
