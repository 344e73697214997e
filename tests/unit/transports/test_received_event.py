"""The event that a handler receives."""

from typing import Any

import pytest

from pillarbox.core.errors import ConfigurationError, PermanentError, RejectedError
from pillarbox.core.payload import Upcast
from pillarbox.core.transport import Outgoing
from pillarbox.record import EventTypes
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.transports.handlers import HandlerContext, Handlers, ReceivedEvent
from tests.unit.transports.batches import JSON, call


def sent(body: bytes, content_type: str = JSON) -> Outgoing:
    return outgoing("e", Handlers().to("h"), body=body, content_type=content_type, headers={"a": "b"})


def received(body: bytes, content_type: str = JSON, upcast: Upcast | None = None) -> ReceivedEvent:
    return ReceivedEvent(sent(body, content_type), upcast)


def test_every_field_is_available() -> None:
    one = sent(b'{"id":42}')
    event, message = ReceivedEvent(one), one.message
    fields = "event_id event_type aggregate_type aggregate_id key schema_version"
    for name in (*fields.split(), "correlation_id", "causation_id", "trace_id", "occurred_at", "content_type"):
        assert getattr(event, name) == getattr(message, name)
    assert (event.payload, event.payload_bytes, event.headers) == ({"id": 42}, b'{"id":42}', {"a": "b"})


def test_a_received_event_is_read_only_and_its_repr_has_no_payload() -> None:
    event = received(b'{"secret":1}')
    with pytest.raises(AttributeError):
        event.payload = {}  # type: ignore[misc]
    assert repr(event) == "<ReceivedEvent thing.happened e>"


@pytest.mark.parametrize("content_type", [JSON, "application/json; charset=utf-8", "application/cloudevents+json"])
def test_json_is_decoded(content_type: str) -> None:
    assert received(b'{"a":[1,null]}', content_type).payload == {"a": [1, None]}


def test_anything_else_stays_bytes() -> None:
    assert received(b"{}", "application/octet-stream").payload == b"{}"


def test_the_payload_is_decoded_once() -> None:
    event = received(b"{}")
    assert event.payload is event.payload


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 100_000])
async def test_invalid_json_is_a_permanent_error_without_the_payload(body: bytes) -> None:
    handlers = Handlers()
    handlers.on("*", name="h")(lambda event, _: event.payload)
    result = await call(handlers, body=body + b"canary")
    assert isinstance(result, PermanentError)
    assert "canary" not in str(result)
    assert result.__cause__ is None


async def test_a_handler_that_reads_bytes_accepts_invalid_json() -> None:
    handlers = Handlers()
    seen: list[bytes] = []
    handlers.on("*", name="h")(lambda event, _: seen.append(event.payload_bytes))
    assert await call(handlers, body=b"{") is None
    assert seen == [b"{"]


async def test_older_versions_are_upcast() -> None:
    types = EventTypes()
    types.register("thing.happened", version=2, upcasters={1: lambda payload: {"number": payload["n"]}})
    handlers = Handlers(upcast=types.upcast)
    seen: list[Any] = []

    @handlers.on("*", name="h")
    def note(event: ReceivedEvent, context: HandlerContext) -> None:
        seen.append((event.payload, event.schema_version))

    assert await call(handlers, body=b'{"n":1}') is None
    assert seen == [({"number": 1}, 1)]


async def test_an_unknown_version_is_retried() -> None:
    def unknown(event_type: str, version: int, payload: Any) -> Any:
        raise ConfigurationError("deploy the release that registers it")

    handlers = Handlers(upcast=unknown)
    handlers.on("*", name="h")(lambda event, _: event.payload)
    result = await call(handlers)
    assert type(result) is RejectedError
    assert "deploy the release that registers it" in str(result)


async def test_the_context_has_attempt_and_destination() -> None:
    handlers = Handlers()
    seen: list[HandlerContext] = []

    @handlers.on("*", name="h")
    async def note(event: ReceivedEvent, context: HandlerContext) -> None:
        seen.append(context)

    await call(handlers, attempt=3, epoch=7, headers={"a": "b"})
    assert seen == [HandlerContext(attempt=3, headers={"a": "b"}, epoch=7, destination="somewhere")]
