"""Checks of a Kafka cluster against the settings; they create nothing."""

import asyncio
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import pytest

from pillarbox.admin.diagnosis import CheckResult
from pillarbox.schemes import transport_plugin
from pillarbox.transports.kafka import KafkaTransport
from pillarbox.transports.kafka.diagnosis import KafkaDiagnosis
from tests.integration.doctor.asking import ask
from tests.integration.kafka.topics import new_topic
from tests.servers.kafka import KafkaServer
from tests.servers.ports import free_port

FORBIDDEN = 29


@pytest.fixture
def server(kafka_server: KafkaServer) -> Iterator[KafkaServer]:
    yield kafka_server
    kafka_server.heal()


async def asked(check: str, url: str, **wanted: Any) -> CheckResult:
    async with aclosing(KafkaDiagnosis(url, connect_timeout="1s", **wanted)) as cluster:
        return await ask(cluster.checks(), check)


async def test_a_cluster_is_named_with_its_brokers_and_protocol(server: KafkaServer) -> None:
    found = await asked("transport.reachable", server.url())
    assert (found.result, "1 brokers" in found.message, "PLAINTEXT" in found.message) == ("pass", True, True)


async def test_an_unreachable_cluster_says_why_and_shows_no_password() -> None:
    found = await asked("transport.reachable", f"kafka://app:s3cret@127.0.0.1:{free_port()}")
    assert (found.result, "refused" in found.message, "s3cret" in found.message) == ("fail", True, False)


async def test_a_topic_is_named_with_its_partitions_and_replicas(server: KafkaServer) -> None:
    topic = new_topic()
    server.create_topic(topic, 3)
    found = await asked("transport.topics", server.url(), addresses={"orders": KafkaTransport.to(topic=topic)})
    assert f"{topic} (3 partitions, 1 replicas)" in found.message
    assert (found.result, "replicas" in found.fix) == ("warn", True)


async def test_a_missing_topic_fails_unless_it_is_created(server: KafkaServer) -> None:
    to = {"orders": KafkaTransport.to(topic=new_topic())}
    assert (await asked("transport.topics", server.url(), addresses=to, declare=False)).result == "fail"
    assert (await asked("transport.topics", server.url(), addresses=to)).result == "warn"


async def test_a_topic_that_the_user_must_not_see_fails(server: KafkaServer) -> None:
    if not server.is_mock:
        pytest.skip("not supported: a real broker cannot be told to refuse")
    topic = new_topic()
    server.create_topic(topic)
    server.tell("topic_error", topic, FORBIDDEN)
    found = await asked("transport.topics", server.url(), addresses={"orders": KafkaTransport.to(topic=topic)})
    assert (found.result, "grant" in found.fix) == ("fail", True)


async def test_templates_of_topics_are_not_checked(server: KafkaServer) -> None:
    found = await asked("transport.topics", server.url(), addresses={"all": KafkaTransport.to()})
    assert found.result == "pass"


async def test_the_plugin_runs_every_check_within_its_bounds(server: KafkaServer) -> None:
    topic = new_topic()
    server.create_topic(topic)
    plugin = transport_plugin("kafka")
    to = {"orders": plugin.address("orders", {"topic": topic})}
    found = plugin.diagnosis(server.url(), {"connect_timeout": "1s", "send_timeout": "10s"}, to)
    assert found is not None
    async with asyncio.timeout(60), aclosing(found):
        results = {check.name: (await check.ask()).result for check in found.checks()}
    assert results["transport.reachable"] == "pass"
    assert set(results.values()) <= {"pass", "warn"}
