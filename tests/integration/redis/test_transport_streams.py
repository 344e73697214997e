"""What arrives: fields that any client reads, the stream of a template, trimmed streams, another database, TLS."""

import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cloudevents.core.bindings.http import HTTPMessage, from_binary_event

from pillarbox import Destination, Event, Outbox, Relay, Route
from pillarbox.core.errors import ConfigurationError, PermanentError, UnavailableError
from pillarbox.relay.envelope import CloudEvents
from pillarbox.stores.memory import MemoryStore
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.transports.redis import RedisTransport
from tests.integration.redis.conftest import Batch, MakeTransport
from tests.integration.redis.reading import entries, ids
from tests.servers.availability import available
from tests.servers.ports import free_port
from tests.servers.redis import RedisServer, certificate_settings


async def _relayed(transport: RedisTransport, destination: Destination, *events: Event) -> None:
    store = MemoryStore()
    with store.transaction() as transaction:
        Outbox().record(transaction, *events)
    await Relay(
        store=store,
        transports={"redis": transport},
        destinations={"to": destination},
        routes=[Route(to=["to"])],
    ).run_until_empty()


async def test_every_property_of_an_event_is_a_field(
    make: MakeTransport, redis_server: RedisServer, stream: str
) -> None:
    event = Event(
        "order.placed",
        {"id": 42},
        event_id="evt-1",
        aggregate_type="ORDER",
        aggregate_id="42",
        correlation_id="c-1",
        headers={"tenant": "é", "eventType": "forged", "id": "forged", "body": "forged"},
    )
    await _relayed(make(), Destination(RedisTransport.to(stream=stream)), event)
    [entry] = entries(redis_server, stream)
    fields = {name.decode(): value.decode() for name, value in entry.fields.items()}
    assert fields.pop("header:occurredAt").endswith("Z")
    assert fields == {
        "id": "evt-1",
        "type": "order.placed",
        "content_type": "application/json",
        "correlation_id": "c-1",
        "body": '{"id":42}',
        "header:eventType": "order.placed",
        "header:schemaVersion": "1",
        "header:aggregateType": "ORDER",
        "header:aggregateId": "42",
        "header:tenant": "é",
        "header:id": "forged",
        "header:body": "forged",
    }


async def test_the_official_sdk_reads_a_cloud_event_in_binary_mode(
    make: MakeTransport, redis_server: RedisServer, stream: str
) -> None:
    body = CloudEvents(source="/shop", mode="binary")
    event = Event("order.placed", {"id": 42}, event_id="evt-1", aggregate_type="ORDER", aggregate_id="42")
    await _relayed(make(), Destination(RedisTransport.to(stream=stream), body=body), event)
    [entry] = entries(redis_server, stream)
    headers = {name: value for name, value in entry.headers.items() if name.startswith("ce-")}
    message = HTTPMessage(headers={**headers, "content-type": entry.text("content_type")}, body=entry.body)
    read = from_binary_event(message)
    assert (read.get_id(), read.get_type(), read.get_source()) == ("evt-1", "order.placed", "/shop")
    assert (read.get_subject(), read.get_data()) == ("ORDER/42", {"id": 42})


async def test_the_stream_is_taken_from_the_message(
    make: MakeTransport, redis_server: RedisServer, batch: Batch, stream: str
) -> None:
    to = RedisTransport.to(stream=f"{stream}.{{event_type}}.{{aggregate_id}}")
    sent = [outgoing("a", to, event_type="order.placed"), outgoing("b", to, event_type="order.paid")]
    assert await make().send(sent) == [None, None]
    assert ids(redis_server, f"{stream}.order.placed.1") == ["a"]
    assert ids(redis_server, f"{stream}.order.paid.1") == ["b"]
    first = outgoing("c", RedisTransport.to(stream=f"{stream}-{{key}}"))
    missing = first._replace(message=first.message._replace(key=None))
    refused, stored = await make().send([missing, *batch(1)])
    assert isinstance(refused, PermanentError)
    assert stored is None


async def test_a_stream_keeps_the_newest_entries(
    make: MakeTransport, redis_server: RedisServer, batch: Batch, stream: str
) -> None:
    assert await make().send(batch(20, max_length=5, trim="exact")) == [None] * 20
    assert ids(redis_server, stream) == [f"e{n}" for n in range(15, 20)]


async def test_an_approximate_limit_bounds_a_stream(
    make: MakeTransport, redis_server: RedisServer, batch: Batch, stream: str
) -> None:
    assert await make().send(batch(500, max_length=100)) == [None] * 500
    assert 100 <= len(ids(redis_server, stream)) < 500


async def test_entries_past_their_age_are_deleted(
    make: MakeTransport, redis_server: RedisServer, batch: Batch, stream: str
) -> None:
    now = round(time.time() * 1000)
    with redis_server.client() as client:
        client.xadd(stream, {"id": "old"}, id=f"{now - 7_200_000}-0")
        client.xadd(stream, {"id": "young"}, id=f"{now - 1_800_000}-0")
    assert await make().send(batch(1, max_age="1h", trim="exact")) == [None]
    assert ids(redis_server, stream) == ["young", "e0"]


async def test_events_go_to_the_database_of_the_url(
    make: MakeTransport, redis_server: RedisServer, batch: Batch, stream: str
) -> None:
    assert await make(redis_server.url(3)).send(batch(1)) == [None]
    assert ids(redis_server, stream) == []
    assert len(entries(redis_server, stream, db=3)) == 1
    [result] = await make(redis_server.url(999)).send(batch(1))
    assert isinstance(result, UnavailableError)
    assert "out of range" in str(result)


@pytest.fixture(scope="module")
def secure(certificates: Path) -> Iterator[tuple[RedisServer, int, Path]]:
    """A server with a second port for TLS."""
    port = free_port()
    with available(lambda: RedisServer(settings=certificate_settings(port, certificates))) as server:
        yield server, port, certificates / "authority.pem"


async def test_a_server_with_a_trusted_certificate_is_used(
    make: MakeTransport, secure: tuple[RedisServer, int, Path], batch: Batch, stream: str
) -> None:
    server, port, authority = secure
    tls = ssl.create_default_context(cafile=str(authority))
    assert await make(f"rediss://localhost:{port}", tls=tls).send(batch(5)) == [None] * 5
    assert len(ids(server, stream)) == 5


async def test_a_server_with_an_untrusted_certificate_receives_nothing(
    make: MakeTransport, secure: tuple[RedisServer, int, Path], batch: Batch, stream: str
) -> None:
    server, port, authority = secure
    [result] = await make(f"rediss://localhost:{port}").send(batch(1))
    assert isinstance(result, UnavailableError)
    assert "certificate verify failed" in str(result)
    other_name = ssl.create_default_context(cafile=str(authority))
    [result] = await make(f"rediss://127.0.0.1:{port}", tls=other_name).send(batch(1))
    assert isinstance(result, UnavailableError)
    assert "IP address mismatch" in str(result)
    assert ids(server, stream) == []


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://cache", "redis://"),
        ("redis://cache/zero", "not a number"),
        ("redis://cache/0?ssl=true", "no options"),
        ("redis://user:12/34@cache/0", "%2F"),
        ("redis://cache:port", "port"),
    ],
)
def test_a_url_that_cannot_be_used_is_refused_without_showing_it(url: str, why: str) -> None:
    with pytest.raises(ConfigurationError, match=why) as caught:
        RedisTransport(url)
    assert "12/34" not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        {"stream": ""},
        {"stream": "{nothing}"},
        {"stream": "a", "max_length": 0},
        {"stream": "a", "max_length": 5, "max_age": "1h"},
        {"stream": "a", "trim": "sometimes"},
    ],
)
def test_an_address_that_cannot_work_is_refused(address: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError):
        RedisTransport.to(**address)  # type: ignore[arg-type]
