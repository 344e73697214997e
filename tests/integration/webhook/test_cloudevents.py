"""CloudEvents over HTTP, read and written by the official SDK."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from cloudevents.core.bindings.http import HTTPMessage, from_binary_event, from_structured_event, to_binary_event
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

from pillarbox import Destination, Event, Outbox, Relay, Route
from pillarbox.relay.envelope import CloudEvents
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.transports.webhook import WebhookTransport
from pillarbox.transports.webhook.headers import encoded
from tests.integration.webhook.conftest import MakeTransport
from tests.integration.webhook.receiver import Received, Receiver

STRANGE = 'Grüße "100 %" 日本 🚀'
EVENT = Event(
    "order.placed",
    {"n": 1, "text": STRANGE},
    event_id="evt 1 é%",
    aggregate_type="ORDER",
    aggregate_id=STRANGE,
    key="ORDER:1",
    correlation_id="c 1",
)


async def sent(make: MakeTransport, receiver: Receiver, database: Path, body: CloudEvents, event: Event) -> Received:
    """One event through a relay, as the receiver got it."""
    store, transport = SqliteStore(database), make(receiver.url())
    await store.schema.apply()
    with closing(sqlite3.connect(database)) as connection, connection:
        Outbox().record(connection, event)
    relay = Relay(
        store=store,
        transports={"hooks": transport},
        destinations={"partner": Destination(WebhookTransport.to(), body=body)},
        routes=[Route(to=["partner"])],
    )
    await relay.run_until_empty()
    await store.aclose()
    [request] = receiver.requests
    return request


def message_of(request: Received) -> HTTPMessage:
    return HTTPMessage({name.lower(): value for name, value in request.headers.items()}, request.body)


@pytest.mark.parametrize("mode", ["binary", "structured"])
async def test_the_sdk_reads_the_event(make: MakeTransport, receiver: Receiver, tmp_path: Path, mode: Any) -> None:
    request = await sent(make, receiver, tmp_path / "outbox.db", CloudEvents(source="/shop", mode=mode), EVENT)
    read = from_binary_event if mode == "binary" else from_structured_event
    event = read(message_of(request), JSONFormat())
    assert (event.get_id(), event.get_type(), event.get_source()) == ("evt 1 é%", "order.placed", "/shop")
    assert (event.get_subject(), event.get_extension("correlationid")) == (f"ORDER/{STRANGE}", "c 1")
    data = event.get_data()
    assert (json.loads(data) if isinstance(data, bytes | str) else data) == {"n": 1, "text": STRANGE}


async def test_bytes_pass_unchanged_in_binary_mode(make: MakeTransport, receiver: Receiver, tmp_path: Path) -> None:
    event = Event("blob", bytes(range(256)), event_id="b", content_type="application/x-blob")
    request = await sent(make, receiver, tmp_path / "outbox.db", CloudEvents(source="/shop", mode="binary"), event)
    assert (request.body, request.header("content-type")) == (bytes(range(256)), "application/x-blob")
    assert request.header("ce-id") == "b"


def test_values_are_encoded_as_the_sdk_encodes_them() -> None:
    texts = [STRANGE, "plain", "a b", '"', "%", "ÿ", "€", "😀", "~!'()*"]
    for text in texts:
        attributes = {"id": "1", "type": "t", "source": "/s", "specversion": "1.0", "subject": text}
        message = to_binary_event(CloudEvent(attributes, b""), JSONFormat())
        headers = {name.lower(): value for name, value in message.headers.items()}
        assert headers["ce-subject"] == encoded(text)
