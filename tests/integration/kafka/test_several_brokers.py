"""A cluster of three brokers, one of which is down in the middle of a batch: everything arrives, in the order of each
key."""

import asyncio
from collections import defaultdict
from collections.abc import Iterator

import pytest

from pillarbox.core.transport import SendResult
from pillarbox.testing.waiting import eventually
from pillarbox.transports.kafka import KafkaTransport
from tests.integration.kafka.conftest import of_key
from tests.integration.kafka.topics import ids, new_topic, read_all
from tests.servers.kafka import KafkaServer

EVENTS, KEYS, PARTITIONS = 3000, 40, 6


@pytest.fixture
def cluster() -> Iterator[KafkaServer]:
    if not KafkaServer.is_mock:
        pytest.skip("not supported: the brokers at KAFKA_URL are not ours to take down")
    with KafkaServer(brokers=3) as cluster:
        yield cluster


@pytest.mark.parametrize("broker", [1, 2, 3])
async def test_a_broker_that_is_down_in_the_middle_of_a_batch_delays_its_partitions(
    cluster: KafkaServer, broker: int
) -> None:
    topic = new_topic()
    cluster.create_topic(topic, PARTITIONS)
    cluster.tell("rtt", 20)
    transport = KafkaTransport(
        cluster.url(), send_timeout="60s", connect_timeout="10s", client={"batch.num.messages": 20}
    )
    messages = [of_key(f"{n}", topic, key=f"key{n % KEYS}") for n in range(EVENTS)]
    progress = transport.pace.progress
    assert progress is not None

    async def send_all() -> list[SendResult]:
        return [one for n in range(0, EVENTS, 500) for one in await transport.send(messages[n : n + 500])]

    async with asyncio.TaskGroup() as group:
        sending = group.create_task(send_all())
        await eventually(lambda: int(str(progress())) >= 700, within=60)
        cluster.down(broker)
        seen = int(str(progress()))
        await eventually(lambda: int(str(progress())) >= seen + 10 or sending.done(), within=60)
        assert not sending.done()
        cluster.up(broker)
    await transport.aclose()
    assert sending.result() == [None] * EVENTS
    arrived = read_all(cluster.bootstrap, topic)
    assert len({one.partition() for one in arrived}) == PARTITIONS
    by_key: dict[bytes | None, list[int]] = defaultdict(list)
    for one in arrived:
        by_key[one.key()].append(int(ids([one])[0]))
    # The mock stores again what was stored but not confirmed when the connection was lost: it checks no sequences.
    first_copies = {key: list(dict.fromkeys(found)) for key, found in by_key.items()}
    assert first_copies == {f"key{key}".encode(): list(range(key, EVENTS, KEYS)) for key in range(KEYS)}
