"""Topology: addresses, exchanges and queues are checked when they are created, and declared in order."""

from typing import Any

import pytest

from pillarbox.core.errors import ConfigurationError, PermanentError
from pillarbox.core.message import Message
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.transports.rabbitmq import Binding, DeadLetterTarget, Exchange, Queue, RabbitMQTransport
from pillarbox.transports.rabbitmq.topology import QueueBinding, Topology


def test_a_queue_is_a_quorum_queue_by_default() -> None:
    assert Queue(name="orders").all_arguments() == {"x-queue-type": "quorum"}
    assert Queue(name="orders", type="classic").all_arguments() == {"x-queue-type": "classic"}


def test_a_full_queue_rejects_messages_and_drops_no_confirmed_one() -> None:
    assert Queue(name="orders", max_length=10).all_arguments()["x-overflow"] == "reject-publish"
    by_size = Queue(name="orders", arguments={"x-max-length-bytes": 4096})
    assert by_size.all_arguments()["x-overflow"] == "reject-publish"


def test_dropping_confirmed_messages_must_be_configured() -> None:
    assert Queue(name="orders", max_length=10, overflow="drop-head").all_arguments()["x-overflow"] == "drop-head"


def test_a_ttl_is_declared_in_milliseconds() -> None:
    assert Queue(name="orders", message_ttl="7 days").all_arguments()["x-message-ttl"] == 604_800_000


def test_dead_letters_are_routed_to_their_queue_by_its_name() -> None:
    arguments = Queue(name="orders", dead_letter=DeadLetterTarget(exchange="dlx", queue="orders.dlq")).all_arguments()
    assert (arguments["x-dead-letter-exchange"], arguments["x-dead-letter-routing-key"]) == ("dlx", "orders.dlq")


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"name": ""}, "a queue must have a name"),
        ({"name": "é" * 128}, "255 bytes"),
        ({"name": "a\nb"}, "control character"),
        ({"type": "stream"}, '"quorum" or "classic"'),
        ({"max_length": 0}, "max_length"),
        ({"max_length": -1}, "max_length"),
        ({"message_ttl": "0s"}, "message_ttl"),
        ({"message_ttl": "soon"}, "message_ttl"),
        ({"message_ttl": "60 days"}, "49 days"),
        ({"overflow": "explode"}, "overflow"),
        ({"overflow": "reject-publish-dlx"}, "quorum"),
        ({"arguments": {"x-max-priority": 5}}, "x-max-priority"),
        ({"arguments": {"x-queue-mode": "lazy"}}, "x-queue-mode"),
        ({"arguments": {"x-overflow": "drop-head"}}, "overflow instead"),
        ({"arguments": {"x-queue-type": "classic"}}, "type instead"),
    ],
)
def test_an_invalid_queue_is_refused(wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigurationError, match=named):
        Queue(**{"name": "orders", **wrong})


@pytest.mark.parametrize(("name", "kind"), [("", "topic"), ("x" * 256, "topic"), ("shop", "tropic")])
def test_an_invalid_exchange_is_refused(name: str, kind: str) -> None:
    with pytest.raises(ConfigurationError, match="exchange"):
        Exchange(name=name, type=kind)


def test_an_exchange_type_of_a_plugin_is_accepted() -> None:
    assert Exchange(name="later", type="x-delayed-message").durable


def test_nothing_is_bound_to_the_default_exchange() -> None:
    with pytest.raises(ConfigurationError, match="default exchange"):
        Binding(exchange="", routing_key="orders")


@pytest.mark.parametrize("what", ["exchanges", "queues"])
def test_a_name_listed_twice_is_rejected(what: str) -> None:
    twice: Any = {"exchanges": [Exchange(name="a")] * 2, "queues": [Queue(name="a")] * 2}[what]
    with pytest.raises(ConfigurationError, match="'a' is listed twice"):
        RabbitMQTransport("amqp://localhost/", **{what: twice})


def test_everything_is_declared_after_what_it_needs() -> None:
    queue = Queue(
        name="orders",
        type="classic",
        bindings=[Binding(exchange="shop", routing_key="order.*")],
        dead_letter=DeadLetterTarget(exchange="dlx", queue="orders.dlq"),
    )
    assert Topology(exchanges=[Exchange(name="shop")], queues=[queue]).declarations() == [
        Exchange(name="shop"),
        Exchange(name="dlx", type="direct"),
        queue,
        Queue(name="orders.dlq", type="classic"),
        QueueBinding(queue="orders", exchange="shop", routing_key="order.*"),
        QueueBinding(queue="orders.dlq", exchange="dlx", routing_key="orders.dlq"),
    ]


def test_a_dead_letter_exchange_or_queue_listed_by_itself_is_taken_as_it_is_listed() -> None:
    dead = DeadLetterTarget(exchange="dlx", queue="dlq")
    queues = [Queue(name="a", dead_letter=dead), Queue(name="b", dead_letter=dead), Queue(name="dlq", max_length=9)]
    declared = Topology(exchanges=[Exchange(name="dlx", type="topic")], queues=queues).declarations()
    assert [item for item in declared if isinstance(item, Exchange)] == [Exchange(name="dlx", type="topic")]
    assert [item for item in declared if isinstance(item, Queue)] == queues
    assert [item for item in declared if isinstance(item, QueueBinding)] == [
        QueueBinding(queue="dlq", exchange="dlx", routing_key="dlq")
    ]


def test_a_queue_keeps_its_own_copy_of_arguments_and_bindings() -> None:
    arguments, bindings = {"x-expires": 1000}, [Binding(exchange="shop")]
    queue = Queue(name="orders", arguments=arguments, bindings=bindings)
    arguments["x-expires"] = 2
    bindings.clear()
    assert (queue.arguments["x-expires"], len(queue.bindings)) == (1000, 1)


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
def test_an_invalid_routing_key_is_refused(routing_key: str) -> None:
    with pytest.raises(ConfigurationError, match="routing key"):
        RabbitMQTransport.to(exchange="shop", routing_key=routing_key)


@pytest.mark.parametrize("exchange", ["x" * 256, "é" * 128, "a\rb", "\ud800"])
def test_an_invalid_exchange_name_is_refused(exchange: str) -> None:
    with pytest.raises(ConfigurationError, match="exchange"):
        RabbitMQTransport.to(exchange=exchange)


def test_the_default_exchange_needs_the_name_of_a_queue() -> None:
    with pytest.raises(ConfigurationError, match="queue"):
        RabbitMQTransport.to(exchange="", routing_key="")


@pytest.mark.parametrize("name", ["aggregate_type", "aggregate_id", "key"])
def test_a_message_without_the_value_fails_permanently(name: str) -> None:
    with pytest.raises(PermanentError, match=f"needs {name}.*e1"):
        RabbitMQTransport.to(exchange="shop", routing_key=f"{{{name}}}").key_for(message(**{name: None}))


@pytest.mark.parametrize("event_type", ["x" * 250, "é" * 125, "\udcff"])
def test_a_key_that_is_too_long_or_cannot_be_encoded_fails_its_message(event_type: str) -> None:
    with pytest.raises(PermanentError, match="e1"):
        RabbitMQTransport.to(exchange="shop", routing_key="orders.{event_type}").key_for(message(event_type=event_type))


@pytest.mark.parametrize("key", ["", "a\nb", "a\x85b", "a\u2028b"])
def test_a_key_that_can_name_no_queue_fails_its_message(key: str) -> None:
    with pytest.raises(PermanentError, match="e1"):
        RabbitMQTransport.to(routing_key="{key}").key_for(message(key=key))
    assert RabbitMQTransport.to(exchange="shop", routing_key="{key}").key_for(message(key=key)) == key


def test_equal_addresses_are_equal() -> None:
    assert RabbitMQTransport.to(exchange="a", transport="t") == RabbitMQTransport.to(exchange="a", transport="t")
    assert hash(RabbitMQTransport.to(exchange="a")) == hash(RabbitMQTransport.to(exchange="a"))
    assert RabbitMQTransport.to(exchange="a") != RabbitMQTransport.to(exchange="b")
    assert (
        repr(RabbitMQTransport.to(exchange="a"))
        == "RabbitMQAddress(transport='', exchange='a', routing_key='{event_type}')"
    )
