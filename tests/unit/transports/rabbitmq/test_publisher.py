"""One batch over one channel: the frames written, their order, and the confirms."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, NamedTuple

import pytest
from pika import BasicProperties, spec

from pillarbox.core.errors import NackedError, PermanentError, RejectedError, UnavailableError
from pillarbox.core.transport import Outgoing, SendResult
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.transports.rabbitmq import RabbitMQTransport
from pillarbox.transports.rabbitmq.confirms import BatchResults, ChannelRefused, Publication
from pillarbox.transports.rabbitmq.connection import RabbitMQConnection
from pillarbox.transports.rabbitmq.declaring import ExistingQueues
from pillarbox.transports.rabbitmq.driver import Wire
from pillarbox.transports.rabbitmq.plugin import BrokerEndpoint
from pillarbox.transports.rabbitmq.publisher import Publisher
from tests.unit.transports.rabbitmq.scripted import Broker, content_frames, method_frame, scripted

CHANNEL = 1
TO = RabbitMQTransport.to(routing_key="q")
TOO_LONG = "x" * 256
HEAVY = {f"h{n}": "x" * 8_192 for n in range(16)}
LEFT_TO_PIKA = {"correlationId": "\ud800"}
"""The encoder does not take them; pika does, because this header is a property and not sent."""


class Opened(NamedTuple):
    publisher: Publisher
    wire: Wire
    broker: Broker


async def turn() -> None:
    """Let waiting tasks run until they wait again."""
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.fixture
async def opened() -> AsyncIterator[Opened]:
    with scripted(Wire) as (wire, broker):
        publisher = Publisher(wire)
        opening = asyncio.create_task(publisher.open())
        await turn()
        broker.say(CHANNEL, spec.Channel.OpenOk())
        await turn()
        broker.say(CHANNEL, spec.Confirm.SelectOk())
        await opening
        broker.heard()
        yield Opened(publisher, wire, broker)


def publications_of(*messages: Outgoing) -> list[Publication]:
    return [Publication(position, one, "x", "q") for position, one in enumerate(messages)]


def ids_heard(broker: Broker) -> list[str]:
    return [frame.properties.message_id for frame in broker.heard() if frame.NAME == "Header"]


async def carried(opened: Opened, messages: Sequence[Outgoing], *says: bytes) -> list[SendResult]:
    results = BatchResults(len(messages))
    carrying = asyncio.create_task(opened.publisher.publish(publications_of(*messages), results))
    await turn()
    for data in says:
        opened.broker.send(data)
    await carrying
    return results.as_list()


def named(*event_ids: str, **changes: Any) -> list[Outgoing]:
    return [outgoing(event_id, TO, body=b"body")._replace(**changes) for event_id in event_ids]


def ack(tag: int, *, multiple: bool = False) -> bytes:
    return method_frame(CHANNEL, spec.Basic.Ack(tag, multiple))


def nack(tag: int) -> bytes:
    return method_frame(CHANNEL, spec.Basic.Nack(tag, False, False))


def returned(event_id: str) -> bytes:
    method = method_frame(CHANNEL, spec.Basic.Return(312, "NO_ROUTE", "x", "q"))
    return b"".join([method, *content_frames(CHANNEL, BasicProperties(message_id=event_id), b"body")])


async def test_confirms_do_not_go_through_pika(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []
    process: Any = opened.broker.connection._process_frame

    def noted(frame: object) -> None:
        seen.append(frame)
        process(frame)

    monkeypatch.setattr(opened.wire, "_process_frame", noted)
    assert await carried(opened, named("a", "b"), ack(1), ack(2)) == [None] * 2
    assert seen == []


async def test_everything_is_accepted_by_one_multiple(opened: Opened) -> None:
    assert await carried(opened, named("a", "b", "c"), ack(3, multiple=True)) == [None] * 3
    assert ids_heard(opened.broker) == ["a", "b", "c"]
    assert opened.publisher.idle
    assert opened.wire.confirmed == 1


async def test_the_next_batch_continues_the_tags(opened: Opened) -> None:
    assert await carried(opened, named("a", "b"), ack(2, multiple=True)) == [None] * 2
    assert await carried(opened, named("c", "d"), ack(4), ack(3)) == [None] * 2


async def test_messages_left_to_pika_keep_their_order(opened: Opened) -> None:
    left_to_pika = named("b", "c", headers=LEFT_TO_PIKA)
    messages = [*named("a"), *left_to_pika, *named("d")]
    outcomes = await carried(opened, messages, nack(1), ack(2), ack(3), ack(4))
    assert [type(outcome) for outcome in outcomes] == [NackedError, type(None), type(None), type(None)]
    assert ids_heard(opened.broker) == ["a", "b", "c", "d"]


async def test_a_message_that_cannot_be_encoded_is_not_sent_and_takes_no_tag(opened: Opened) -> None:
    messages = [*named("a", TOO_LONG, "b"), *named("heavy", headers=HEAVY), *named("lone \ud800", "c")]
    outcomes = await carried(opened, messages, ack(1), nack(2), ack(3))
    kinds = [type(None), PermanentError, NackedError, PermanentError, PermanentError, type(None)]
    assert [type(outcome) for outcome in outcomes] == kinds
    assert "cannot be encoded for AMQP (ShortStringTooLong: " in str(outcomes[1])
    assert "the headers of event heavy have" in str(outcomes[3])
    assert "cannot be encoded for AMQP (UnicodeEncodeError: " in str(outcomes[4])
    assert ids_heard(opened.broker) == ["a", "b", "c"]


async def test_a_batch_without_encodable_messages_waits_for_nothing(opened: Opened) -> None:
    [outcome] = await carried(opened, named(TOO_LONG))
    assert isinstance(outcome, PermanentError)
    assert opened.broker.heard() == []


async def test_a_return_before_the_ack_in_the_same_bytes_rejects_the_message(opened: Opened) -> None:
    said = ack(1) + returned("b") + ack(3, multiple=True)
    outcomes = await carried(opened, named("a", "b", "c"), said)
    assert [type(outcome) for outcome in outcomes] == [type(None), RejectedError, type(None)]


async def test_confirms_before_the_channel_was_closed_count(opened: Opened) -> None:
    messages, results = named("a", "b", "c"), BatchResults(3)
    carrying = asyncio.create_task(opened.publisher.publish(publications_of(*messages), results))
    await turn()
    opened.broker.send(ack(2) + method_frame(CHANNEL, spec.Channel.Close(404, "NOT_FOUND", 60, 40)) + ack(3))
    with pytest.raises(ChannelRefused):
        await carrying
    assert [type(outcome) for outcome in results.as_list()] == [UnavailableError, type(None), UnavailableError]
    assert not opened.publisher.idle


async def test_confirmed_bytes_have_left_and_the_stream_reports_the_rest(opened: Opened) -> None:
    wire, stream = opened.wire, opened.broker.stream
    await carried(opened, named("a"), ack(1))
    stream.held_back = 100
    assert wire.transmitted == wire.written > 0
    sending = asyncio.create_task(opened.publisher.publish(publications_of(*named("b")), BatchResults(1)))
    await turn()
    assert wire.transmitted == wire.written - 100
    opened.broker.send(ack(2))
    await sending
    assert wire.transmitted == wire.written
    wire.write([b"another frame"])
    assert wire.transmitted == wire.written - 100


async def test_a_publisher_whose_opening_was_cancelled_is_not_used_again(opened: Opened) -> None:
    endpoint = BrokerEndpoint.parse("amqp://localhost/")
    connection = RabbitMQConnection(endpoint, heartbeat=0, reply_timeout=10, existing=ExistingQueues(endpoint))
    connection._wire = opened.wire
    opening = asyncio.create_task(connection.publisher())
    await turn()
    opened.broker.say(2, spec.Channel.OpenOk())
    await turn()
    opening.cancel()
    await asyncio.wait([opening])
    again = asyncio.create_task(connection.publisher())
    await turn()
    assert not again.done()
    assert [frame.method.NAME for frame in opened.broker.heard()][-1] == "Channel.Open"
    again.cancel()


async def test_nothing_is_written_to_a_channel_that_is_being_closed(opened: Opened) -> None:
    opened.wire.close()
    opened.broker.heard()
    carrying = asyncio.create_task(opened.publisher.publish(publications_of(*named("a")), BatchResults(1)))
    await turn()
    assert opened.broker.heard() == []
    assert carrying.done()
    with pytest.raises(UnavailableError):
        await carrying
