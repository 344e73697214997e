"""Messages that crash their consumers: how the metadata of the committed offset counts them, and what is no crash."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from pillarbox.core.errors import UnavailableError
from pillarbox.testing.conformance.sources.receive import take, take_through_outages, taken_ids
from pillarbox.testing.waiting import eventually
from pillarbox.transports.kafka.source import KafkaDelivery
from tests.integration.kafka.conftest import MakeSource
from tests.integration.kafka.topics import new_topic, put
from tests.servers.kafka import OFFSET_COMMIT, KafkaServer

MANY = 1_000
PARTITIONS = 4


@pytest.fixture
def group() -> str:
    """A group of its own: a client that is no member cannot commit for one that has members."""
    return new_topic()


def fill(server: KafkaServer, topic: str, *names: str) -> None:
    put(server.bootstrap, topic, [(b"{}", [("eventId", name.encode())]) for name in names])


def committed(server: KafkaServer, topic: str, group: str, partition: int = 0) -> tuple[int, str]:
    """The committed offset of a partition, with its metadata."""
    consumer = Consumer({"bootstrap.servers": server.bootstrap, "group.id": group, "log_level": 0})
    try:
        [place] = consumer.committed([TopicPartition(topic, partition)], timeout=60)
        return place.offset, place.metadata or ""
    finally:
        consumer.close()


def commit(server: KafkaServer, topic: str, group: str, offset: int, metadata: str) -> None:
    """Commit for a group without members."""
    consumer = Consumer({"bootstrap.servers": server.bootstrap, "group.id": group, "log_level": 0})
    try:
        done = consumer.commit(offsets=[TopicPartition(topic, 0, offset, metadata)], asynchronous=False)
        assert [one.error for one in done or []] == [None]
    finally:
        consumer.close()


def crash(server: KafkaServer, topic: str, group: str, starts: int) -> None:
    """Leave behind what consumers leave that were killed with the first message in flight."""
    commit(server, topic, group, 0, f"pillarbox starts={starts}")


async def test_a_message_is_delivered_after_its_consumer_is_counted(
    server: KafkaServer, listen: MakeSource, topic: str, group: str
) -> None:
    fill(server, topic, "a")
    delivery = await take(listen(topic, group))
    assert committed(server, topic, group) == (0, "pillarbox starts=1")
    await delivery.ack()


async def test_the_messages_that_were_in_flight_are_delivered_one_at_a_time_and_the_others_together(
    server: KafkaServer, listen: MakeSource, topic: str, group: str
) -> None:
    fill(server, topic, *(f"e{n}" for n in range(6)))
    crash(server, topic, group, starts=2)
    source = listen(topic, group, prefetch=3)
    seen: list[KafkaDelivery] = []
    for number in range(3):
        delivery = await take(source)
        assert (delivery.incoming.event_id, delivery.quarantined) == (f"e{number}", True)
        assert committed(server, topic, group) == (number, f"pillarbox starts={1 if number else 3} alone={number}:1")
        await delivery.ack()
    seen = [await take(source) for _ in range(3)]  # type: ignore[misc]
    assert [(one.incoming.event_id, one.quarantined) for one in seen] == [(f"e{n}", False) for n in (3, 4, 5)]
    for delivery in seen:
        await delivery.ack()
    await source.aclose()
    assert committed(server, topic, group) == (6, "")


async def test_metadata_of_another_client_counts_nothing(
    server: KafkaServer, listen: MakeSource, topic: str, group: str
) -> None:
    fill(server, topic, "a", "b")
    commit(server, topic, group, 1, "pillarbox starts=soon")
    delivery = await take(listen(topic, group))
    assert (delivery.incoming.event_id, delivery.quarantined) == ("b", False)
    assert committed(server, topic, group) == (1, "pillarbox starts=1")


async def test_to_leave_without_a_message_in_flight_is_no_crash(
    server: KafkaServer, listen: MakeSource, topic: str, group: str
) -> None:
    fill(server, topic, "a", "b", "c")
    source = listen(topic, group, prefetch=1)
    await (await take(source)).ack()
    await source.aclose()
    assert committed(server, topic, group) == (1, "")


async def test_one_rebalance_quarantines_no_message(server: KafkaServer, listen: MakeSource, group: str) -> None:
    """The mock refuses some of the commits with which a consumer gives its partitions back: then it counts a crash."""
    topic = new_topic()
    server.create_topic(topic, PARTITIONS)
    put(server.bootstrap, topic, [(b"{}", [("eventId", b"e")])] * 20, keys=[f"key{n}".encode() for n in range(20)])
    first = listen(topic, group, prefetch=20)
    for _ in range(20):
        await take(first)
    begun = [committed(server, topic, group, number) for number in range(PARTITIONS)]
    assert begun == [(0, "pillarbox starts=1")] * PARTITIONS
    second = listen(topic, group, prefetch=20)
    assert not (await take_through_outages(second)).quarantined
    after = [committed(server, topic, group, number) for number in range(PARTITIONS)]
    assert {offset for offset, _ in after} == {0}
    assert {metadata for _, metadata in after} <= {"pillarbox starts=1", "pillarbox starts=2"}


async def test_an_outage_is_no_crash_also_for_a_message_in_quarantine(
    server: KafkaServer, listen: MakeSource, topic: str, group: str
) -> None:
    fill(server, topic, "a")
    commit(server, topic, group, 0, "pillarbox starts=2 alone=0:3")
    source = listen(topic, group)
    for _ in range(3):
        delivery = await take_through_outages(source)
        assert (delivery.incoming.event_id, delivery.quarantined, delivery.crashes) == ("a", True, 3)
        assert committed(server, topic, group) == (0, "pillarbox starts=3 alone=0:4")
        session = source._session
        assert session is not None
        session.fail(UnavailableError("an outage"))
        with pytest.raises(UnavailableError):
            await delivery.ack()
    await (await take_through_outages(source)).ack()
    await eventually(lambda: committed(server, topic, group)[0] == 1)


async def test_a_message_is_delivered_although_its_consumer_cannot_be_counted(
    mock: KafkaServer, listen: MakeSource, topic: str, group: str, caplog: pytest.LogCaptureFixture
) -> None:
    fill(mock, topic, "a", "b", "c")
    commit(mock, topic, group, 0, "pillarbox starts=2")
    mock.fail_requests(OFFSET_COMMIT, *[KafkaError.INVALID_COMMIT_OFFSET_SIZE] * MANY)
    source = listen(topic, group, prefetch=1)
    first = await take(source)
    assert (first.incoming.event_id, first.quarantined) == ("a", True)
    assert committed(mock, topic, group) == (0, "pillarbox starts=2")
    assert str(KafkaError.INVALID_COMMIT_OFFSET_SIZE) in caplog.text
    await first.ack()
    mock.heal()
    assert await taken_ids(source, 2) == ["b", "c"]
    await source.aclose()
    assert committed(mock, topic, group) == (3, "")


async def test_a_broker_that_accepts_no_counts_gets_offsets_without_them(
    mock: KafkaServer, listen: MakeSource, topic: str, group: str
) -> None:
    fill(mock, topic, "a")
    mock.fail_requests(OFFSET_COMMIT, KafkaError.OFFSET_METADATA_TOO_LARGE)
    delivery = await take(listen(topic, group))
    assert committed(mock, topic, group) == (0, "")
    await delivery.ack()
    await eventually(lambda: committed(mock, topic, group) == (1, ""))


async def test_a_consumer_that_may_not_commit_says_so(
    mock: KafkaServer, listen: MakeSource, topic: str, group: str
) -> None:
    fill(mock, topic, "a")
    mock.fail_requests(OFFSET_COMMIT, *[KafkaError.GROUP_AUTHORIZATION_FAILED] * 3)
    source = listen(topic, group)
    with pytest.raises(UnavailableError, match=str(KafkaError.GROUP_AUTHORIZATION_FAILED)):
        await take(source)
    mock.heal()
    assert (await take_through_outages(source)).incoming.event_id == "a"


async def test_an_acknowledged_message_in_quarantine_lets_the_others_flow(
    server: KafkaServer, listen: MakeSource, topic: str, group: str
) -> None:
    fill(server, topic, "poison", "a")
    commit(server, topic, group, 0, "pillarbox starts=9 alone=0:5")
    source = listen(topic, group)
    poison = await take(source)
    assert (poison.quarantined, poison.crashes) == (True, 5)
    await poison.reject("it crashed 5 consumers")
    assert await taken_ids(source, 1) == ["a"]
    await eventually(lambda: committed(server, topic, group)[0] == 2)
