"""Nothing is reordered, lost or stored twice: with errors inside a batch, refused messages and an outage."""

import asyncio
from collections import defaultdict

import pytest

from pillarbox.core.errors import PermanentError, UnavailableError
from pillarbox.core.transport import SendResult
from pillarbox.testing.conformance.transports.lifecycle import pass_turns
from pillarbox.testing.waiting import eventually
from pillarbox.transports.kafka import KafkaTransport
from pillarbox.transports.kafka.producer import ProducerSession
from tests.integration.kafka.conftest import MakeTransport, of_key
from tests.integration.kafka.topics import ids, new_topic, read_all
from tests.servers.kafka import PRODUCE, KafkaServer

SMALL_REQUESTS = {"batch.num.messages": 50}
ONE_IN_FLIGHT = SMALL_REQUESTS | {"max.in.flight.requests.per.connection": 1, "linger.ms": 500}
"""The mock does not check sequence numbers: it would store what a broker refuses after a refused request. Requests are
full: behind one of fewer than 5 messages, librdkafka has the next one ready and sends it after the refusal."""
TOO_LARGE, FORBIDDEN, OUT_OF_SEQUENCE, OLD_EPOCH, UNKNOWN_PRODUCER, INVALID = 10, 29, 45, 47, 59, 87
FOLLOWING = 4
"""Requests that librdkafka sends while one of one message is unconfirmed."""


def kinds(results: list[SendResult]) -> list[type[object]]:
    return [type(result) for result in results]


async def test_retried_requests_keep_the_order_of_a_busy_key(
    mock: KafkaServer, make: MakeTransport, topic: str
) -> None:
    mock.tell("rtt", 10)
    mock.fail_requests(PRODUCE, 0, 7, 0, 20, 6, 0, 19, 7)
    names = [f"e{n}" for n in range(500)]
    assert await make(client=SMALL_REQUESTS).send([of_key(one, topic) for one in names]) == [None] * 500
    assert ids(read_all(mock.bootstrap, topic)) == names


async def test_an_outage_in_the_middle_loses_repeats_and_reorders_nothing(
    mock: KafkaServer, make: MakeTransport
) -> None:
    topic = new_topic()
    mock.create_topic(topic, 4)
    transport = make(send_timeout="30s", client=SMALL_REQUESTS)
    messages = [of_key(f"{n}", topic, key=f"key{n % 40}") for n in range(3000)]
    batches = [messages[start : start + 500] for start in range(0, 3000, 500)]
    results = await transport.send(batches[0])
    mock.down()
    during = asyncio.gather(transport.send(batches[1]), transport.send(batches[2]))
    await pass_turns(20)
    assert not during.done()
    mock.up()
    for more in [*await during, *[await transport.send(batch) for batch in batches[3:]]]:
        results += more
    assert results == [None] * 3000
    arrived = read_all(mock.bootstrap, topic)
    assert sorted(map(int, ids(arrived))) == list(range(3000))
    by_key: dict[bytes | None, list[int]] = defaultdict(list)
    for one in arrived:
        by_key[one.key()].append(int(ids([one])[0]))
    assert len(by_key) == 40
    assert all(found == sorted(found) for found in by_key.values())


@pytest.mark.parametrize("code", [TOO_LARGE, INVALID])
async def test_a_refused_message_in_the_middle_fails_alone_and_the_others_stay_in_order(
    mock: KafkaServer, make: MakeTransport, topic: str, code: int
) -> None:
    names = [f"e{n}" for n in range(200)]
    # The second request is refused; of its messages, sent one by one, the 21st.
    mock.fail_requests(PRODUCE, 0, code, *[0] * 20, code)
    transport = make(client=ONE_IN_FLIGHT)
    await transport.ping()
    results = await transport.send([of_key(one, topic) for one in names])
    arrived = ids(read_all(mock.bootstrap, topic))
    [refused] = [name for name, result in zip(names, results, strict=True) if result is not None]
    assert arrived == [name for name in names if name != refused]
    at = names.index(refused)
    assert 0 < at < 199
    assert isinstance(results[at], PermanentError)
    assert f"event {refused} of" in str(results[at])


@pytest.mark.parametrize("follow_up", [OUT_OF_SEQUENCE, OLD_EPOCH, UNKNOWN_PRODUCER])
async def test_the_culprit_is_found_although_requests_behind_it_were_on_their_way(
    mock: KafkaServer, make: MakeTransport, topic: str, monkeypatch: pytest.MonkeyPatch, follow_up: int
) -> None:
    """A broker refuses them because of their sequence numbers, which the mock does not check."""
    # librdkafka sends a request only while fewer than 5 messages of its partition are unconfirmed.
    transport = make(client={"batch.num.messages": 1})
    assert await transport.send([of_key("e0", topic)]) == [None]
    mock.tell("rtt", 1000)  # in this time, the client sends the requests behind the first
    mock.fail_requests(PRODUCE, TOO_LARGE, *[follow_up] * FOLLOWING)
    opened = KafkaTransport._opened

    def heal_before_the_search(self: KafkaTransport, *, singly: bool = False) -> ProducerSession:
        if singly:
            mock.heal()
            mock.fail_requests(PRODUCE, TOO_LARGE)
        return opened(self, singly=singly)

    monkeypatch.setattr(KafkaTransport, "_opened", heal_before_the_search)
    names = [f"e{n}" for n in range(1, 101)]
    results = await transport.send([of_key(one, topic) for one in names])
    assert {n: type(result) for n, result in enumerate(results) if result is not None} == {0: PermanentError}
    assert ids(read_all(mock.bootstrap, topic)) == ["e0", *names[1:]]


async def test_a_record_over_the_limit_of_the_topic_is_dead_lettered_alone(
    real: KafkaServer, make: MakeTransport
) -> None:
    topic = new_topic()
    real.create_topic(topic, config={"max.message.bytes": "10000"})
    names = [f"e{n}" for n in range(500)]
    batch = [of_key(one, topic, body=b"x" * (20_000 if one == "e250" else 10)) for one in names]
    results = await make().send(batch)
    assert {n: type(result) for n, result in enumerate(results) if result is not None} == {250: PermanentError}
    assert ids(read_all(real.bootstrap, topic)) == [one for one in names if one != "e250"]


async def test_two_refused_messages_fail_and_a_concurrent_send_does_not_notice(
    mock: KafkaServer, make: MakeTransport, topic: str
) -> None:
    other = new_topic()
    mock.create_topic(other)
    transport = make(client=ONE_IN_FLIGHT)
    await transport.ping()
    mock.fail_requests(PRODUCE, TOO_LARGE, TOO_LARGE, TOO_LARGE, TOO_LARGE)
    first, second = await asyncio.gather(
        transport.send([of_key(f"a{n}", topic) for n in range(100)]),
        transport.send([of_key(f"b{n}", other) for n in range(100)]),
    )
    for name, results, place in (("a", first, topic), ("b", second, other)):
        accepted = [f"{name}{n}" for n, result in enumerate(results) if result is None]
        assert ids(read_all(mock.bootstrap, place)) == accepted
        assert {type(result) for result in results} <= {type(None), PermanentError}
    assert 196 <= [*first, *second].count(None) < 200


@pytest.mark.parametrize("code", [OUT_OF_SEQUENCE, OLD_EPOCH])
async def test_a_producer_that_the_broker_rejects_is_replaced(
    mock: KafkaServer, make: MakeTransport, topic: str, code: int
) -> None:
    transport = make(client=ONE_IN_FLIGHT)
    await transport.ping()
    mock.fail_requests(PRODUCE, 0, code)
    messages = [of_key(f"e{n}", topic) for n in range(200)]
    results = await transport.send(messages)
    accepted = results.count(None)
    assert 0 < accepted < 200
    assert kinds(results) == [type(None)] * accepted + [UnavailableError] * (200 - accepted)
    assert "producer" in str(results[-1])
    assert await transport.send(messages[accepted:]) == [None] * (200 - accepted)
    assert ids(read_all(mock.bootstrap, topic)) == [f"e{n}" for n in range(200)]


async def test_only_the_beginning_of_a_batch_arrives_if_the_broker_stays_away(
    mock: KafkaServer, make: MakeTransport, topic: str
) -> None:
    mock.tell("rtt", 50)
    transport = make(send_timeout="4s", connect_timeout="4s", client=ONE_IN_FLIGHT)  # the first batch takes half of it
    names = [f"e{n}" for n in range(500)]
    sending = asyncio.create_task(transport.send([of_key(one, topic) for one in names]))

    async def some_arrived() -> bool:
        return transport.pace.progress is not None and transport.pace.progress() != 0

    await eventually(some_arrived)
    mock.down()
    results = await sending
    mock.up()
    accepted = results.count(None)
    assert 0 < accepted < 500
    assert kinds(results) == [type(None)] * accepted + [UnavailableError] * (500 - accepted)
    arrived = ids(read_all(mock.bootstrap, topic))
    assert arrived == names[: len(arrived)]
    assert len(arrived) >= accepted
    mock.tell("rtt", 0)
    # With the usual timeout: a client may reconnect for longer than a second.
    patient = make(client=ONE_IN_FLIGHT)
    assert await patient.send([of_key(one, topic) for one in names[accepted:]]) == [None] * (500 - accepted)
    assert list(dict.fromkeys(ids(read_all(mock.bootstrap, topic)))) == names


async def test_nothing_overtakes_a_message_that_fails_while_the_culprit_is_searched(
    mock: KafkaServer, make: MakeTransport, topic: str
) -> None:
    transport = make(client=ONE_IN_FLIGHT)
    await transport.ping()
    mock.fail_requests(PRODUCE, 0, TOO_LARGE, 0, 0, OUT_OF_SEQUENCE)
    names = [f"e{n}" for n in range(200)]
    results = await transport.send([of_key(one, topic) for one in names])
    accepted = results.count(None)
    assert 0 < accepted < 199
    assert kinds(results) == [type(None)] * accepted + [UnavailableError] * (200 - accepted)
    assert ids(read_all(mock.bootstrap, topic)) == names[:accepted]
    assert await transport.send([of_key(one, topic) for one in names[accepted:]]) == [None] * (200 - accepted)
    assert ids(read_all(mock.bootstrap, topic)) == names
