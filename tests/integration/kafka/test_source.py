"""Groups: offsets are committed in order, rebalances lose nothing, and a delayed message blocks no other."""

import asyncio
import threading

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from pillarbox.core.errors import ConfigurationError, UnavailableError
from pillarbox.core.source import Delivery
from pillarbox.testing.conformance.sources.receive import take, take_through_outages, taken_ids
from pillarbox.testing.waiting import eventually
from pillarbox.transports.kafka import KafkaSource, KafkaTransport
from pillarbox.transports.kafka.consumer import KafkaConsumerSession
from tests.integration.kafka.conftest import MakeSource, of_key
from tests.integration.kafka.topics import headers, new_topic, put, read_all, text
from tests.servers.kafka import PRODUCE, KafkaServer

TOO_LARGE = 10


def fill(server: KafkaServer, topic: str, *names: str) -> None:
    put(server.bootstrap, topic, [(b"{}", [("eventId", name.encode())]) for name in names])


def committed(server: KafkaServer, topic: str, group: str) -> int:
    """The committed offset of the topic's first partition; negative: none."""
    consumer = Consumer({"bootstrap.servers": server.bootstrap, "group.id": group, "log_level": 0})
    try:
        [place] = consumer.committed([TopicPartition(topic, 0)], timeout=60)
        return place.offset
    finally:
        consumer.close()


async def test_an_offset_is_not_committed_past_an_unacknowledged_message(
    server: KafkaServer, listen: MakeSource, topic: str
) -> None:
    fill(server, topic, "a", "b", "c", "d")
    source = listen(topic, "g")
    first, second, third = [await take(source) for _ in range(3)]
    await third.ack()
    await first.ack()
    await source.aclose()
    assert await taken_ids(listen(topic, "g"), 3) == ["b", "c", "d"]
    with pytest.raises(UnavailableError):
        await second.ack()


async def test_a_short_delay_does_not_wait_for_a_long_one(server: KafkaServer, listen: MakeSource, topic: str) -> None:
    fill(server, topic, "long", "short", "next")
    source = listen(topic, "g")
    await (await take(source)).retry(delay=3600, reason="later")
    await (await take(source)).retry(delay=0.01, reason="soon")
    assert sorted(str(one) for one in await taken_ids(source, 2)) == ["next", "short"]


async def test_a_retried_message_returns_to_its_own_group_only(
    server: KafkaServer, listen: MakeSource, topic: str
) -> None:
    fill(server, topic, "a", "b")
    first, second = listen(topic, "g1"), listen(topic, "g2")
    await (await take(first)).retry(delay=0.01, reason="not yet")
    assert sorted(str(one) for one in await taken_ids(first, 2)) == ["a", "b"]
    assert await taken_ids(second, 2) == ["a", "b"]
    assert read_all(server.bootstrap, second.retry_topic) == []


async def test_a_moved_message_keeps_its_key_and_headers(server: KafkaServer, listen: MakeSource, topic: str) -> None:
    put(server.bootstrap, topic, [(b"\xff", [("raw", b"\xfe"), ("raw", b"\xfd")])], key=b"\x00k")
    source = listen(topic, "g")
    await (await take(source)).reject("unusable")
    [dead] = read_all(server.bootstrap, source.dead_letter_topic)
    assert (dead.key(), dead.value(), list(headers(dead))[:2]) == (
        b"\x00k",
        b"\xff",
        [("raw", b"\xfe"), ("raw", b"\xfd")],
    )
    assert (text(dead, "pillarbox-queue"), text(dead, "pillarbox-attempts")) == (topic, "1")


async def test_a_consumer_whose_thread_fails_says_so_and_is_replaced(
    server: KafkaServer, listen: MakeSource, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ValueError

    fill(server, topic, "a")
    source = listen(topic, "g")
    with monkeypatch.context() as patch:
        patch.setattr(KafkaConsumerSession, "_receive", fail)
        with pytest.raises(UnavailableError, match="ValueError"):
            await take(source)
    assert (await take(source)).incoming.event_id == "a"


async def test_a_rebalance_voids_what_is_in_flight_and_loses_nothing(server: KafkaServer, listen: MakeSource) -> None:
    topic = new_topic()
    server.create_topic(topic, 4)
    names = {f"e{n}" for n in range(40)}
    messages = [(b"{}", [("eventId", f"e{n}".encode())]) for n in range(40)]
    put(server.bootstrap, topic, messages, keys=[f"key{n}".encode() for n in range(40)])
    group = new_topic()
    first = listen(topic, group, prefetch=40)
    held = [await take(first) for _ in range(40)]
    assert {one.incoming.event_id for one in held} == names
    second = listen(topic, group, prefetch=40)
    redelivered = await take_through_outages(second)
    acknowledged: set[str | None] = set()
    void: set[str | None] = set()
    for one in held:
        try:
            await one.ack()
            acknowledged.add(one.incoming.event_id)
        except UnavailableError:
            void.add(one.incoming.event_id)
    assert redelivered.incoming.event_id in void
    assert acknowledged | void == names
    await redelivered.ack()
    rest = {redelivered.incoming.event_id}
    while rest != void:
        delivery = await take_through_outages(second)
        assert delivery.incoming.event_id in void
        rest.add(delivery.incoming.event_id)
        await delivery.ack()


async def test_a_busy_consumer_is_paused_and_resumed(server: KafkaServer, listen: MakeSource, topic: str) -> None:
    fill(server, topic, *(f"e{n}" for n in range(6)))
    source = listen(topic, "g", prefetch=2)
    held: list[Delivery] = [await take(source) for _ in range(2)]
    waiting = asyncio.create_task(source.receive())

    await eventually(lambda: source._session is not None and source._session.is_paused)
    assert not waiting.done()
    await held[0].ack()
    async with asyncio.timeout(60):
        third = await waiting
    assert third.incoming.event_id == "e2"
    await held[1].ack()
    await third.ack()
    assert await taken_ids(source, 3) == ["e3", "e4", "e5"]


async def test_a_partition_that_is_lost_while_it_is_paused_flows_again(
    mock: KafkaServer, listen: MakeSource, topic: str
) -> None:
    """librdkafka keeps the pause of a partition across assignments."""
    fill(mock, topic, "a")
    source = listen(topic, "g", connect_timeout="2s")
    held = await take(source)
    mock.down()
    with pytest.raises(UnavailableError):
        await source.receive()
    for _ in range(2):  # each waits for its timeout; meanwhile the partitions are paused, and the group excludes us
        with pytest.raises(UnavailableError):
            await source.receive()
    mock.up()
    assert await taken_ids(source, 1) == ["a"]
    with pytest.raises(UnavailableError):
        await held.ack()


async def test_a_retry_survives_its_consumer_in_a_group_that_began_at_the_end(
    server: KafkaServer, listen: MakeSource, topic: str
) -> None:
    fill(server, topic, "old")
    first = listen(topic, "g", start="latest")
    waiting = asyncio.create_task(first.receive())
    await eventually(lambda: committed(server, topic, "g") == 1)
    fill(server, topic, "a")
    async with asyncio.timeout(60):
        delivery = await waiting
    assert delivery.incoming.event_id == "a"
    await delivery.retry(delay=0.01, reason="not yet")
    await first.aclose()
    again = await take(listen(topic, "g", start="latest"))
    assert (again.incoming.event_id, again.incoming.attempts) == ("a", 1)


async def test_a_group_that_began_at_the_end_skips_nothing_when_it_is_restarted(
    server: KafkaServer, listen: MakeSource, topic: str
) -> None:
    fill(server, topic, "old")
    first = listen(topic, "g", start="latest")
    waiting = asyncio.create_task(first.receive())
    await eventually(lambda: committed(server, topic, "g") == 1)
    waiting.cancel()
    await first.aclose()
    fill(server, topic, "while it was stopped")
    assert await taken_ids(listen(topic, "g", start="latest"), 1) == ["while it was stopped"]


@pytest.mark.parametrize("start", ["earliest", "latest"])
async def test_a_group_whose_offset_is_gone_continues_with_the_first_message(
    server: KafkaServer, listen: MakeSource, topic: str, start: str
) -> None:
    """The broker lost the end of the log, or deleted what the group had not read: its first message is the next one."""
    fill(server, topic, "a", "b")
    group = new_topic()
    consumer = Consumer({"bootstrap.servers": server.bootstrap, "group.id": group, "log_level": 0})
    consumer.commit(offsets=[TopicPartition(topic, 0, 100)], asynchronous=False)
    consumer.close()
    source = listen(topic, group, start=start)
    assert await taken_ids(source, 2) == ["a", "b"]
    await eventually(lambda: committed(server, topic, group) != 100)
    await source.aclose()
    assert committed(server, topic, group) == 2


async def test_more_partitions_than_messages_in_flight_are_all_read(mock: KafkaServer, listen: MakeSource) -> None:
    """Each has a message that waits for its first commit and then for room, as does the consumer for the next."""
    topic = new_topic()
    mock.create_topic(topic, 8)
    put(mock.bootstrap, topic, [(b"{}", [("eventId", b"e")])] * 40, keys=[f"key{n}".encode() for n in range(40)])
    source = listen(topic, "g", prefetch=1)
    mock.tell("rtt", 300)
    delivery = await take(source)
    mock.tell("rtt", 0)
    session = source._session
    assert session is not None
    for number in range(39):
        waiting = asyncio.create_task(take(source))
        if not number:
            await eventually(lambda: session._messages.ready and not session._messages.unmarked)
        await asyncio.sleep(0)  # it waits now
        await delivery.ack()
        delivery = await waiting
    await delivery.ack()


async def test_a_consumer_that_has_ended_does_not_recover(server: KafkaServer, listen: MakeSource, topic: str) -> None:
    fill(server, topic, "a")
    source = listen(topic, "g")
    await take(source)
    session = source._session
    assert session is not None
    session._end("the test ends it")
    session.recover()
    assert session.failure is not None
    assert (await take_through_outages(source)).incoming.event_id == "a"
    assert source._session is not session


async def test_a_message_that_is_too_large_for_its_retry_topic_waits_in_its_place(
    mock: KafkaServer, listen: MakeSource, topic: str
) -> None:
    fill(mock, topic, "a", "b")
    source = listen(topic, "g", prefetch=1)
    held = await take(source)
    mock.fail_requests(PRODUCE, *[TOO_LARGE] * 20)
    await held.retry(delay=0.01, reason="not yet")
    mock.heal()
    again = await take(source)
    assert (again.incoming.event_id, again.incoming.attempts) == ("a", 1)
    await again.ack()
    assert await taken_ids(source, 1) == ["b"]
    assert read_all(mock.bootstrap, source.retry_topic) == []


async def test_a_message_that_is_too_large_for_its_dead_letter_topic_is_dead_lettered_without_its_body(
    mock: KafkaServer, listen: MakeSource, topic: str
) -> None:
    fill(mock, topic, "a", "b")
    source = listen(topic, "g")
    held = await take(source)
    mock.fail_requests(PRODUCE, TOO_LARGE)
    await held.reject("unusable")
    [dead] = read_all(mock.bootstrap, source.dead_letter_topic)
    assert (text(dead, "eventId"), text(dead, "pillarbox-reason")) == ("a", "unusable")
    assert (text(dead, "pillarbox-original"), dead.value() or b"") == (f"{topic}/0/0", b"")
    assert await taken_ids(source, 1) == ["b"]


async def test_a_received_message_names_the_topic_it_was_sent_to(
    server: KafkaServer, listen: MakeSource, topic: str
) -> None:
    fill(server, topic, "a")
    source = listen(topic, "g")
    first = await take(source)
    await first.retry(delay=0.01, reason="not yet")
    assert [first.incoming.destination, (await take(source)).incoming.destination] == [topic, topic]


async def test_a_missing_topic_is_unavailable_and_named(server: KafkaServer) -> None:
    source = KafkaSource(server.url(), topic=(missing := new_topic()), group="g", declare=False)
    with pytest.raises(UnavailableError) as caught:
        await source.receive()
    assert missing in str(caught.value)
    await source.aclose()


@pytest.mark.parametrize(
    "wrong", [{"group": ""}, {"topic": "a b"}, {"prefetch": 0}, {"start": "middle"}, {"group": "ä"}]
)
def test_a_source_that_cannot_work_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError):
        KafkaSource("kafka://k1", **{"topic": "t", "group": "g", **wrong})  # type: ignore[arg-type]


async def test_a_consumer_that_cannot_recover_is_replaced(server: KafkaServer, listen: MakeSource, topic: str) -> None:
    fill(server, topic, "a", "b")
    source = listen(topic, "g")
    held = await take(source)
    session = source._session
    assert session is not None
    session._erred(KafkaError(KafkaError.FENCED_INSTANCE_ID, "fenced", fatal=True))
    with pytest.raises(UnavailableError):
        await held.ack()
    assert await taken_ids(source, 2) == ["a", "b"]
    assert source._session is not session


async def test_nothing_runs_after_the_close(server: KafkaServer, listen: MakeSource, topic: str) -> None:
    before = set(threading.enumerate())
    source, transport = listen(topic, "g"), KafkaTransport(server.url())
    assert await transport.send([of_key("a", topic)]) == [None]
    assert await taken_ids(source, 1) == ["a"]
    await source.aclose()
    await transport.aclose()

    async def all_ended() -> bool:
        left = set(threading.enumerate()) - before
        return not any(one.name.startswith("pillarbox-kafka") for one in left)

    await eventually(all_ended)
