"""Topics, permissions and limits: an unavailable topic harms no other, and a full queue is no failure."""

import asyncio

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from pillarbox import TlsOptions
from pillarbox.core.errors import ConfigurationError, PermanentError, UnavailableError
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.testing.conformance.transports.lifecycle import pass_turns
from pillarbox.testing.waiting import eventually
from pillarbox.transports.kafka import KafkaAddress, KafkaTransport, topics
from pillarbox.transports.kafka.producer import Reports
from pillarbox.transports.kafka.topics import Topics
from tests.integration.kafka.conftest import MakeTransport, of_key
from tests.integration.kafka.topics import ids, new_topic, read_all
from tests.servers.kafka import PRODUCE, KafkaServer
from tests.servers.ports import free_port

FORBIDDEN = 29


async def test_a_topic_that_does_not_exist_is_unavailable_and_named(
    server: KafkaServer, make: MakeTransport, topic: str
) -> None:
    missing = new_topic()
    transport = make(declare=False)
    before, nowhere, after = await transport.send([of_key("a", topic), of_key("b", missing), of_key("c", topic)])
    assert (before, after) == (None, None)
    assert isinstance(nowhere, UnavailableError)
    assert missing in str(nowhere)
    assert ids(read_all(server.bootstrap, topic)) == ["a", "c"]
    server.create_topic(missing)

    async def is_accepted() -> bool:
        return await transport.send([of_key("b", missing)]) == [None]

    await eventually(is_accepted)  # the transport remembers for a moment that it is missing


async def test_a_missing_topic_is_not_asked_for_with_every_send(
    make: MakeTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    describe = Topics.describe

    def counted(self: Topics, client: object, topic: str) -> object:
        asked.append(topic)
        return describe(self, client, topic)

    monkeypatch.setattr(Topics, "describe", counted)
    monkeypatch.setattr(topics, "_REMEMBERED", 3600.0)
    missing, transport = new_topic(), make(declare=False)
    results = [await transport.send([of_key("b", missing)]) for _ in range(5)]
    assert all(isinstance(one, UnavailableError) for [one] in results)
    assert asked == [missing]


async def test_a_topic_is_created_with_the_partitions_and_replicas_of_the_settings(
    server: KafkaServer, make: MakeTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mock cannot create topics: there, the request is compared."""
    wanted, missing = list[tuple[str, int, int]](), new_topic()
    create = AdminClient.create_topics

    def noted(self: AdminClient, new: list[NewTopic], **options: object) -> object:
        wanted.extend((one.topic, one.num_partitions, one.replication_factor) for one in new)
        return create(self, new, **options)

    monkeypatch.setattr(AdminClient, "create_topics", noted)
    [result] = await make(partitions=3, replication=1, connect_timeout="2s").send([of_key("a", missing)])
    assert wanted == [(missing, 3, 1)]
    if not server.is_mock:
        assert result is None
        assert (
            len(AdminClient({"bootstrap.servers": server.bootstrap}).list_topics(missing).topics[missing].partitions)
            == 3
        )


async def test_a_topic_that_cannot_be_created_says_why(mock: KafkaServer, make: MakeTransport) -> None:
    [result] = await make(connect_timeout="1s").send([of_key("a", new_topic())])
    assert isinstance(result, UnavailableError)
    assert "cannot be created" in str(result)


async def test_a_forbidden_topic_is_unavailable_and_harms_no_other(
    mock: KafkaServer, make: MakeTransport, topic: str
) -> None:
    other = new_topic()
    mock.create_topic(other)
    transport = make(client={"max.in.flight.requests.per.connection": 1})
    await transport.ping()
    mock.fail_requests(PRODUCE, FORBIDDEN)
    results = await transport.send([of_key("a", topic)] + [of_key(f"b{n}", other) for n in range(5)])
    refused, accepted = [one for one in results if one is not None], results.count(None)
    assert (accepted, len(refused)) in ((5, 1), (1, 5))
    assert all(isinstance(one, UnavailableError) and "authorization" in str(one).lower() for one in refused)
    assert len(read_all(mock.bootstrap, topic) + read_all(mock.bootstrap, other)) == accepted
    assert await transport.send([of_key("c", topic), of_key("c", other)]) == [None, None]


async def test_a_topic_that_the_user_must_not_see_is_unavailable(
    mock: KafkaServer, make: MakeTransport, topic: str
) -> None:
    mock.tell("topic_error", topic, FORBIDDEN)
    [result] = await make().send([of_key("a", topic)])
    assert isinstance(result, UnavailableError)
    assert "authorization" in str(result).lower()


async def test_a_full_queue_is_not_a_failure(server: KafkaServer, make: MakeTransport, topic: str) -> None:
    transport = make(window=7)
    assert transport.pace.batch_size == 7
    names = [f"e{n}" for n in range(500)]
    assert await transport.send([of_key(one, topic, body=b"x" * 5000) for one in names]) == [None] * 500
    assert ids(read_all(server.bootstrap, topic)) == names


async def test_a_closed_transport_reports_what_the_broker_never_confirmed(
    mock: KafkaServer, make: MakeTransport, topic: str
) -> None:
    transport = make()
    assert await transport.send([of_key("known", topic)]) == [None]
    mock.tell("rtt", 500)
    sending = asyncio.create_task(transport.send([of_key(f"e{n}", topic) for n in range(50)]))
    await pass_turns(3)
    mock.down()
    await transport.aclose()
    results = await sending
    assert len(results) == 50
    assert all(isinstance(result, UnavailableError) for result in results)


async def test_a_name_that_no_topic_may_have_is_an_error_of_its_message(make: MakeTransport, topic: str) -> None:
    to = KafkaTransport.to(topic="{event_type}")
    good = of_key("a", topic)
    bad, fine = await make().send([outgoing("b", to, event_type="order placed"), good])
    assert (type(bad), fine) == (PermanentError, None)


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "é", "x" * 250, "orders/{event_type}"])
def test_an_address_without_a_possible_topic_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError):
        KafkaAddress(topic=name)


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("kafka://", {}),
        ("amqp://k1", {}),
        ("kafka://k1:port", {}),
        ("kafka://k1/topic", {}),
        ("kafka://app@k1", {}),
        ("kafka://app:pa/ss@k1/x", {}),
        ("kafka://k1", {"tls": TlsOptions(ca_file="/etc/ca.pem")}),
        ("kafka://k1", {"client": {"enable.idempotence": False}}),
        ("kafka://k1", {"client": {"delivery.report.only.error": True}}),
        ("kafka://k1", {"window": 0}),
        ("kafka://k1", {"sasl_mechanism": "NONE"}),
    ],
)
def test_settings_that_cannot_work_are_refused(url: str, options: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        KafkaTransport(url, **options)  # type: ignore[arg-type]
    assert "pa/ss" not in str(caught.value)


async def test_an_unknown_setting_of_the_client_makes_sends_fail_with_its_name(topic: str) -> None:
    transport = KafkaTransport("kafka://127.0.0.1:1", client={"no.such.setting": 1})
    [result] = await transport.send([of_key("a", topic)])
    assert isinstance(result, UnavailableError)
    assert "no.such.setting" in str(result)


async def test_a_password_is_never_shown() -> None:
    transport = KafkaTransport(f"kafka://app:s3cret@127.0.0.1:{free_port()}", connect_timeout="200ms")
    with pytest.raises(UnavailableError) as caught:
        await transport.ping()
    await transport.aclose()
    assert "s3cret" not in f"{caught.value!r} {transport!r} {caught.value.__cause__!r}"


async def test_a_batch_wakes_the_event_loop_once(
    make: MakeTransport, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    transport = make()
    assert await transport.send([of_key("known", topic)]) == [None]
    loop = asyncio.get_running_loop()
    call, calls = loop.call_soon_threadsafe, list[object]()

    def counted(callback: object, *given: object, **options: object) -> object:
        calls.append(callback)
        return call(callback, *given, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(loop, "call_soon_threadsafe", counted)
    assert await transport.send([of_key(f"e{n}", topic) for n in range(500)]) == [None] * 500
    assert len(calls) == 1


async def test_a_cancelled_send_leaves_nothing_that_blocks_the_next(
    mock: KafkaServer, make: MakeTransport, topic: str
) -> None:
    transport = make(window=20)
    assert await transport.send([of_key("known", topic)]) == [None]
    mock.tell("rtt", 100)
    cancelled = asyncio.create_task(transport.send([of_key(f"c{n}", topic) for n in range(100)]))
    await pass_turns(3)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    mock.tell("rtt", 0)
    assert await transport.send([of_key(f"e{n}", topic) for n in range(100)]) == [None] * 100
    arrived = ids(read_all(mock.bootstrap, topic))
    assert [name for name in arrived if name.startswith("e")] == [f"e{n}" for n in range(100)]
    sent = [name for name in arrived if name.startswith("c")]
    assert sent == [f"c{n}" for n in range(len(sent))]


async def test_a_lost_report_ends_the_producer_and_the_next_send_has_another(
    make: MakeTransport, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    transport = make()
    assert await transport.send([of_key("known", topic)]) == [None]

    def without_memory(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(Reports, "report", without_memory)
        results = await asyncio.wait_for(transport.send([of_key(f"e{n}", topic) for n in range(10)]), 60)
    assert [type(result) for result in results] == [UnavailableError] * 10
    assert "MemoryError" in str(results[0])
    assert await transport.send([of_key("next", topic)]) == [None]
