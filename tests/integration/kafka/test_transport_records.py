"""Records as another client reads them: key, partition, headers and CloudEvents, as docs/reference/kafka.md says."""

import pytest
from cloudevents.core.bindings.kafka import KafkaMessage, from_binary_event
from confluent_kafka import Message

from pillarbox.core.errors import PermanentError
from pillarbox.core.transport import Outgoing
from pillarbox.relay.envelope import CloudEvents, headers_for
from tests.integration.kafka.conftest import MakeTransport, of_key
from tests.integration.kafka.topics import headers, new_topic, read_all
from tests.servers.kafka import KafkaServer

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def murmur2(data: bytes) -> int:
    """The hash of Java's default partitioner, as its source defines it."""
    m, mask = 0x5BD1E995, 0xFFFFFFFF
    h = 0x9747B28C ^ len(data)
    for at in range(0, len(data) // 4 * 4, 4):
        k = int.from_bytes(data[at : at + 4], "little") * m & mask
        k = (k ^ k >> 24) * m & mask
        h = (h * m & mask) ^ k
    rest = data[len(data) // 4 * 4 :]
    if rest:
        h = (h ^ int.from_bytes(rest, "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return h ^ h >> 15


async def only(make: MakeTransport, server: KafkaServer, one: Outgoing, topic: str) -> Message:
    assert await make().send([one]) == [None]
    [found] = read_all(server.bootstrap, topic)
    return found


async def test_a_key_goes_to_the_partition_that_other_clients_compute(server: KafkaServer, make: MakeTransport) -> None:
    topic = new_topic()
    server.create_topic(topic, 7)
    keys = ["a", "ORDER:42", "ключ", "x" * 99, ""]
    assert await make().send([of_key(f"e{n}", topic, key=key) for n, key in enumerate(keys)]) == [None] * len(keys)
    found = {(one.key() or b"").decode(): one.partition() for one in read_all(server.bootstrap, topic)}
    assert found == {key: (murmur2(key.encode()) & 0x7FFFFFFF) % 7 for key in keys}


async def test_an_event_without_a_key_has_none(server: KafkaServer, make: MakeTransport, topic: str) -> None:
    assert (await only(make, server, of_key("a", topic, key=None), topic)).key() is None


async def test_the_headers_of_a_producer_cannot_replace_ours(
    server: KafkaServer, make: MakeTransport, topic: str
) -> None:
    forged = {"eventId": "other", "content-type": "text/forged", "tenant": "acme"}
    found = await only(make, server, of_key("a", topic, headers=forged, content_type="text/x"), topic)
    assert sorted(headers(found)) == [("content-type", b"text/x"), ("eventId", b"a"), ("tenant", b"acme")]


async def test_a_cloudevent_in_binary_mode_is_read_by_the_official_sdk(
    server: KafkaServer, make: MakeTransport, topic: str
) -> None:
    one = of_key("evt-1", topic, body=b'{"id":42}', content_type="application/json")
    message = one.message._replace(event_type="order.placed", key="ORDER:42", trace_id=TRACE)
    body = CloudEvents(source="/shop", mode="binary")
    sent = one._replace(message=message, headers=headers_for(message, body, one.address))
    found = await only(make, server, sent, topic)
    read = {name: value or b"" for name, value in headers(found)}
    event = from_binary_event(KafkaMessage(headers=read, key=found.key(), value=found.value() or b""))
    assert (event.get_id(), event.get_type(), event.get_source()) == ("evt-1", "order.placed", "/shop")
    assert event.get_data() == {"id": 42}
    assert event.get_datacontenttype() == "application/json"
    assert event.get_extension("partitionkey") == "ORDER:42"


@pytest.mark.parametrize("spoiled", [{"a\0b": "1"}, {"a": "\ud800"}, {"\ud800": ""}, {"a\udfff": "\ud800"}])
async def test_a_text_that_kafka_cannot_hold_fails_permanently(
    make: MakeTransport, topic: str, spoiled: dict[str, str]
) -> None:
    [result] = await make().send([of_key("a", topic, headers=spoiled)])
    assert isinstance(result, PermanentError)
