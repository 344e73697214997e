"""Stages on every transport, and on SQLite."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from functools import partial

import pytest

from tests.extremes.linked import received
from tests.extremes.receiving import WebhookReceiver
from tests.faults.conftest import MakeStage, fork_server, make_handled, make_stage
from tests.faults.stage import Stage
from tests.integration.kafka import topics
from tests.servers.kafka import KafkaServer

__all__ = ["fork_server", "make_handled", "make_stage"]

PARTITIONS = 4
A_CALL = frozenset({"after-send", "before-confirm"})
"""Points that no relay reaches that calls handlers: a call is send and confirm."""


@pytest.fixture
def stage_on_kafka(make_stage: MakeStage, postgres_url: str, kafka_server: KafkaServer) -> Stage:
    def receive(topic: str) -> list[str]:
        """Partition by partition: all events of a key are in one."""
        return topics.ids(topics.read_all(kafka_server.bootstrap, topic))

    stage = make_stage(store=postgres_url, transport=kafka_server.url(), receive=receive)
    kafka_server.create_topic(stage.event_type, PARTITIONS)
    return stage


@pytest.fixture
def stage_on_nats(request: pytest.FixtureRequest, make_stage: MakeStage, postgres_url: str) -> Stage:
    server = request.getfixturevalue("nats_server")
    return make_stage(store=postgres_url, transport=server.url(), receive=partial(received, server))


@pytest.fixture
def stage_on_redis(request: pytest.FixtureRequest, make_stage: MakeStage, postgres_url: str) -> Stage:
    server = request.getfixturevalue("redis_server")
    return make_stage(store=postgres_url, transport=server.url(), receive=partial(received, server))


@pytest.fixture
def stage_on_webhook(make_stage: MakeStage, postgres_url: str) -> Iterator[Stage]:
    with closing(WebhookReceiver()) as receiver:
        hook = {"TRANSPORTS__HOOK__URL": receiver.url, "TRANSPORTS__HOOK__ALLOW_NETWORKS": "127.0.0.0/8"}

        def receive(_: str) -> list[str]:
            return [event_id for event_id, _ in receiver.received]

        stage = make_stage(store=postgres_url, transport="", settings=hook, receive=receive)
        yield stage
        stage.close()


@pytest.fixture
def stage_on_handlers(make_handled: MakeStage, postgres_url: str) -> Stage:
    return make_handled(store=postgres_url)


@pytest.fixture
def stage_on_sqlite(make_handled: MakeStage, sqlite_url: str) -> Stage:
    """Its relays share one lane: one works, and the others stand by."""
    return make_handled(store=sqlite_url)


@pytest.fixture(params=["kafka", "nats", "redis", "webhook", "handlers"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def stage(request: pytest.FixtureRequest, transport: str) -> Stage:
    """A stage on PostgreSQL with each transport."""
    found: Stage = request.getfixturevalue(f"stage_on_{transport}")
    return found
