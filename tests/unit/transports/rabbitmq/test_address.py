"""Where a message goes: checked when the address is made, rendered per message."""

from typing import Any

import pytest

from pillarbox.core.errors import ConfigurationError, PermanentError
from pillarbox.core.message import Message
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.transports.rabbitmq import RabbitMQTransport


def message(**changes: Any) -> Message:
    return outgoing("e1", RabbitMQTransport.to()).message._replace(**changes)


@pytest.mark.parametrize(
    ("routing_key", "rendered"),
    [
        ("{event_type}", "thing.happened"),
        ("orders", "orders"),
        ("", ""),
        ("{aggregate_type}.{aggregate_id}.{event_type}", "THING.1.thing.happened"),
        ("by-key.{key}", "by-key.THING:1"),
        ("{{{event_type}}}", "{thing.happened}"),
    ],
)
def test_a_routing_key_is_rendered_from_the_message(routing_key: str, rendered: str) -> None:
    assert RabbitMQTransport.to(exchange="shop", routing_key=routing_key).key_for(message()) == rendered


@pytest.mark.parametrize(
    "routing_key",
    ["{payload}", "{}", "{0}", "{event_type.upper}", "{event_type!r}", "{event_type:>9}", "{", "a\nb", "x" * 256],
)
def test_a_routing_key_that_cannot_work_is_refused_at_once(routing_key: str) -> None:
    with pytest.raises(ConfigurationError, match="routing key"):
        RabbitMQTransport.to(exchange="shop", routing_key=routing_key)


@pytest.mark.parametrize("exchange", ["x" * 256, "é" * 128, "a\rb", "\ud800"])
def test_an_exchange_that_cannot_be_named_is_refused_at_once(exchange: str) -> None:
    with pytest.raises(ConfigurationError, match="exchange"):
        RabbitMQTransport.to(exchange=exchange)


def test_the_default_exchange_needs_the_name_of_a_queue() -> None:
    with pytest.raises(ConfigurationError, match="queue"):
        RabbitMQTransport.to(exchange="", routing_key="")


@pytest.mark.parametrize("name", ["aggregate_type", "aggregate_id", "key"])
def test_a_message_without_the_value_can_never_be_sent_there(name: str) -> None:
    with pytest.raises(PermanentError, match=f"needs {name}.*e1"):
        RabbitMQTransport.to(exchange="shop", routing_key=f"{{{name}}}").key_for(message(**{name: None}))


@pytest.mark.parametrize("event_type", ["x" * 250, "é" * 125, "\udcff"])
def test_a_key_that_grows_too_long_or_cannot_be_encoded_is_the_fault_of_its_message(event_type: str) -> None:
    with pytest.raises(PermanentError, match="e1"):
        RabbitMQTransport.to(exchange="shop", routing_key="orders.{event_type}").key_for(message(event_type=event_type))


def test_equal_addresses_are_equal() -> None:
    assert RabbitMQTransport.to(exchange="a", transport="t") == RabbitMQTransport.to(exchange="a", transport="t")
    assert hash(RabbitMQTransport.to(exchange="a")) == hash(RabbitMQTransport.to(exchange="a"))
    assert RabbitMQTransport.to(exchange="a") != RabbitMQTransport.to(exchange="b")
    assert (
        repr(RabbitMQTransport.to(exchange="a"))
        == "RabbitMQAddress(transport='', exchange='a', routing_key='{event_type}')"
    )
