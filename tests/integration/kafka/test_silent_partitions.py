"""One broker stays down and no other one leads its partitions: their messages are deferred, the others arrive."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from pillarbox.core.errors import NackedError, UnavailableError
from pillarbox.core.transport import Outgoing, SendResult
from pillarbox.testing.waiting import eventually
from pillarbox.transports.kafka import KafkaTransport
from pillarbox.transports.kafka.partitions import partition_of
from tests.integration.kafka.conftest import of_key
from tests.integration.kafka.topics import ids, new_topic, put, read_all
from tests.servers.kafka import PRODUCE, KafkaServer

PARTITIONS, KEYS = 6, 30
DOWN = 1
NOT_ENOUGH_REPLICAS, MANY = 19, 10_000


@pytest.fixture
def cluster() -> Iterator[KafkaServer]:
    if not KafkaServer.is_mock:
        pytest.skip("not supported: the brokers at KAFKA_URL are not ours to take down")
    with KafkaServer(brokers=3) as cluster:
        yield cluster


@pytest.fixture
def topic(cluster: KafkaServer) -> str:
    name = new_topic()
    cluster.create_topic(name, PARTITIONS)
    return name


@pytest.fixture
async def transport(cluster: KafkaServer) -> AsyncIterator[KafkaTransport]:
    # Long enough for a busy machine: a partition that is late counts as silent.
    transport = KafkaTransport(cluster.url(), send_timeout="4s", connect_timeout="10s")
    yield transport
    await transport.aclose()


def led_by(cluster: KafkaServer, topic: str, broker: int) -> set[int]:
    found = AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics(topic, timeout=60).topics[topic]
    return {number for number, partition in found.partitions.items() if partition.leader == broker}


def number_of(one: Outgoing) -> int:
    return partition_of((one.message.key or "").encode(), PARTITIONS)


def is_deferred_alone(result: SendResult) -> bool:
    return isinstance(result, NackedError) and result.alone


async def settled(transport: KafkaTransport, batch: list[Outgoing]) -> None:
    """Send until everything is accepted: the first send also connects."""

    async def is_accepted() -> bool:
        return await transport.send(batch) == [None] * len(batch)

    await eventually(is_accepted, within=90)


def keyed(topic: str, start: int, count: int) -> list[Outgoing]:
    """Messages of all keys; several of each, as pipelined destinations send."""
    return [of_key(f"{n}", topic, key=f"key{n % KEYS}") for n in range(start, start + count)]


def test_the_partition_of_a_key_is_that_of_the_client(server: KafkaServer) -> None:
    topic, keys = new_topic(), [bytes(range(250 - n, 250)) for n in range(1, 40)] + [b"", "é-42".encode()]
    server.create_topic(topic, 7)
    put(server.bootstrap, topic, [(b"", [])] * len(keys), keys=keys, partitioner="murmur2_random")
    arrived = read_all(server.bootstrap, topic)
    assert len(arrived) == len(keys)
    assert all(one.partition() == partition_of(one.key() or b"", 7) for one in arrived)


async def test_messages_of_a_silent_partition_are_deferred_and_the_others_arrive_in_order(
    cluster: KafkaServer, topic: str, transport: KafkaTransport
) -> None:
    silent = led_by(cluster, topic, DOWN)
    await settled(transport, keyed(topic, 0, 90))
    cluster.down(DOWN)
    waiting: list[Outgoing] = []
    for start in (90, 180, 270):
        batch = keyed(topic, start, 90)
        results = await transport.send(batch)
        refused = [one for one, result in zip(batch, results, strict=True) if is_deferred_alone(result)]
        assert refused == [one for one in batch if number_of(one) in silent]
        assert results.count(None) + len(refused) == 90
        waiting += refused
    cluster.up(DOWN)
    await settled(transport, waiting)
    by_key: dict[Any, list[int]] = defaultdict(list)
    for one in read_all(cluster.bootstrap, topic):
        by_key[one.key()].append(int(ids([one])[0]))
    first_copies = {key: list(dict.fromkeys(found)) for key, found in by_key.items()}
    assert first_copies == {f"key{key}".encode(): list(range(key, 360, KEYS)) for key in range(KEYS)}


async def test_a_silent_partition_is_known_although_nothing_else_is_sent(
    cluster: KafkaServer, topic: str, transport: KafkaTransport
) -> None:
    """A destination without other traffic: its first probe is unavailable, later ones are deferred for others."""
    silent = led_by(cluster, topic, DOWN)
    batch = keyed(topic, 0, KEYS)
    own = next(one for one in batch if number_of(one) in silent)
    other = next(one for one in batch if number_of(one) not in silent)
    cluster.down(DOWN)
    [first] = await transport.send([own])
    assert type(first) is UnavailableError
    for _ in range(2):  # over a producer of its own, then without sending
        [again] = await transport.send([own])
        assert is_deferred_alone(again)
    assert await transport.send([other]) == [None]


async def test_messages_without_a_key_go_to_partitions_that_confirm(
    cluster: KafkaServer, topic: str, transport: KafkaTransport
) -> None:
    await settled(transport, keyed(topic, 0, KEYS))
    silent = led_by(cluster, topic, DOWN)
    cluster.down(DOWN)
    await transport.send(keyed(topic, KEYS, KEYS))
    batch = [of_key(f"without{n}", topic, key=None) for n in range(100)]

    async def are_accepted() -> bool:
        # One finds out whether a silent partition responds, if it is time to.
        return (await transport.send(batch)).count(None) >= 99

    await eventually(are_accepted, within=60)
    cluster.up(DOWN)

    async def all_partitions_are_used() -> bool:
        await transport.send([of_key(f"later{n}", topic, key=None) for n in range(100)])
        arrived = read_all(cluster.bootstrap, topic)
        return silent <= {one.partition() for one in arrived if one.key() is None}

    await eventually(all_partitions_are_used, within=60)


async def test_a_topic_without_any_other_partition_is_unavailable(
    cluster: KafkaServer, topic: str, transport: KafkaTransport
) -> None:
    single = new_topic()
    cluster.create_topic(single)
    cluster.tell("lead", single, DOWN, 1)
    alive = next(one for one in keyed(topic, 0, KEYS) if number_of(one) not in led_by(cluster, topic, DOWN))
    lost = of_key("lost", single)
    cluster.down(DOWN)
    for _ in range(3):
        result, accepted = await transport.send([lost, alive])
        assert (type(result), accepted) == (UnavailableError, None)
    template = KafkaTransport.to(topic="{event_type}")
    of_type = lost._replace(message=lost.message._replace(event_type=single), address=template)
    [deferred, accepted] = await transport.send([of_type, alive])
    assert (type(deferred), accepted) == (NackedError, None)


async def test_a_cluster_that_confirms_nothing_is_unavailable(
    cluster: KafkaServer, topic: str, transport: KafkaTransport
) -> None:
    await settled(transport, keyed(topic, 0, KEYS))
    cluster.fail_requests(PRODUCE, *[NOT_ENOUGH_REPLICAS] * MANY)
    for start in (KEYS, 2 * KEYS):
        results = await transport.send(keyed(topic, start, KEYS))
        assert {type(result) for result in results} == {UnavailableError}
    cluster.heal()
    await settled(transport, keyed(topic, KEYS, KEYS))
