"""Checks of a broker against the settings; they declare nothing."""

import json
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from typing import Any

import pytest

from pillarbox.admin.diagnosis import CheckResult
from pillarbox.core.errors import UnavailableError
from pillarbox.transports.rabbitmq import Binding, Exchange, Queue, RabbitMQTransport
from pillarbox.transports.rabbitmq.diagnosis import RabbitMQDiagnosis
from tests.integration.doctor.asking import ask
from tests.integration.rabbitmq.consumer import channel
from tests.integration.rabbitmq.proxy import Proxy
from tests.servers.ports import free_port
from tests.servers.rabbitmq import RabbitMQServer

Asked = Callable[..., Any]


@pytest.fixture
def url(rabbitmq_server: RabbitMQServer) -> str:
    return rabbitmq_server.url()


@pytest.fixture
def name(url: str) -> Iterator[str]:
    """A name for a queue or an exchange; both are deleted at the end of the test."""
    name = f"doctor-{uuid.uuid4().hex[:12]}"
    yield name
    with channel(url) as broker:
        broker.queue_delete(name)
        broker.exchange_delete(name)


async def asked(check: str, address: str, **wanted: Any) -> CheckResult:
    async with aclosing(RabbitMQDiagnosis(address, **wanted)) as broker:
        return await ask(broker.checks(), check)


def names(server: RabbitMQServer, module: str) -> list[str]:
    """The names of all queues (`rabbit_amqqueue`) or exchanges (`rabbit_exchange`) except the default one."""
    listed = server.evaluate(f"[binary_to_list(N) || {{_, _, _, N}} <- {module}:list_names(), N =/= <<>>]")
    return sorted(json.loads(listed))


async def test_a_broker_is_named_with_its_version(url: str, rabbitmq_server: RabbitMQServer) -> None:
    found = await asked("transport.reachable", url)
    assert (found.result, found.message.split()[0], str(rabbitmq_server.port) in found.message) == (
        "pass",
        "RabbitMQ",
        True,
    )


async def test_an_unavailable_broker_or_a_rejected_login_fails(rabbitmq_server: RabbitMQServer) -> None:
    found = await asked("transport.reachable", f"amqp://app:secret@127.0.0.1:{free_port()}/")
    assert (found.result, "ConnectionRefused" in found.message) == ("fail", True)
    found = await asked("transport.reachable", f"amqp://app:secret@127.0.0.1:{rabbitmq_server.port}/")
    assert (found.result, "ACCESS_REFUSED" in found.message, "secret" in found.message) == ("fail", True, False)


async def test_a_missing_exchange_fails(url: str, name: str) -> None:
    to = {"orders": RabbitMQTransport.to(exchange=name, routing_key="order.placed")}
    found = await asked("transport.destinations", url, addresses=to)
    assert (found.result, f"orders: exchange {name!r} does not exist" in found.message) == ("fail", True)
    with channel(url) as broker:
        broker.exchange_declare(name, "topic")
    assert (await asked("transport.destinations", url, addresses=to)).result == "pass"


async def test_a_missing_exchange_passes_if_the_relay_declares_it(url: str, name: str) -> None:
    to = {"orders": RabbitMQTransport.to(exchange=name, routing_key="order.placed")}
    bound = Queue(name=name, bindings=[Binding(exchange=name, routing_key="order.*")])
    wanted = {"addresses": to, "exchanges": [Exchange(name=name)], "queues": [bound]}
    assert (await asked("transport.destinations", url, **wanted)).result == "pass"
    assert (await asked("transport.destinations", url, declare=False, **wanted)).result == "fail"


async def test_an_unroutable_key_fails(url: str, name: str) -> None:
    to = {"orders": RabbitMQTransport.to(routing_key=name)}
    found = await asked("transport.destinations", url, addresses=to, declare=False)
    assert (found.result, f"queue {name!r} does not exist" in found.message) == ("fail", True)
    with channel(url) as broker:
        broker.queue_declare(name, durable=True)
    assert (await asked("transport.destinations", url, addresses=to, declare=False)).result == "pass"


@pytest.mark.parametrize(
    ("kind", "pattern", "result"),
    [
        ("topic", "order.*", "pass"),
        ("topic", "#", "pass"),
        ("topic", "#.placed.late", "pass"),
        ("topic", "order.#", "pass"),
        ("topic", "order.placed", "warn"),
        ("topic", "*.placed", "warn"),
        ("direct", "order.placed.late", "pass"),
        ("direct", "order.#", "warn"),
        ("fanout", "", "pass"),
        ("headers", "", "pass"),
    ],
)
async def test_the_configured_bindings_determine_whether_a_key_is_routable(
    url: str, name: str, kind: str, pattern: str, result: str
) -> None:
    patterns = {"order.*": "*.*.late"}
    bound = Queue(name=name, bindings=[Binding(exchange=name, routing_key=patterns.get(pattern, pattern))])
    to = {"orders": RabbitMQTransport.to(exchange=name, routing_key="order.placed.late")}
    wanted = {"exchanges": [Exchange(name=name, type=kind)], "queues": [bound], "addresses": to}
    assert (await asked("transport.destinations", url, **wanted)).result == result


async def test_a_queue_that_drops_confirmed_messages_fails(url: str, name: str) -> None:
    to = {"orders": RabbitMQTransport.to(routing_key=name)}
    assert (await asked("transport.overflow", url, addresses=to)).result == "pass"
    with channel(url) as broker:
        broker.queue_declare(name, durable=True, arguments={"x-max-length": 10, "x-message-ttl": 60_000})
    found = await asked("transport.overflow", url, addresses=to)
    assert (found.result, name in found.message, "reject-publish" in found.fix) == ("fail", True, True)
    with channel(url) as broker:
        broker.queue_delete(name)
        broker.queue_declare(name, durable=True, arguments={"x-max-length": 10, "x-overflow": "reject-publish"})
    assert (await asked("transport.overflow", url, addresses=to)).result == "pass"


async def test_a_queue_configured_to_drop_messages_is_a_warning(url: str, name: str) -> None:
    wanted = Queue(name=name, type="classic", max_length=10, overflow="drop-head")
    with channel(url) as broker:
        broker.queue_declare(name, durable=True, arguments=wanted.all_arguments())
    assert (await asked("transport.overflow", url, queues=[wanted])).result == "warn"
    assert (await asked("transport.topology", url, queues=[wanted])).result == "pass"


async def test_a_queue_that_differs_from_the_settings_fails_with_the_differences(url: str, name: str) -> None:
    with channel(url) as broker:
        broker.queue_declare(name, durable=True, arguments={"x-max-length": 10, "x-dead-letter-exchange": "dlx"})
    found = await asked("transport.topology", url, queues=[Queue(name=name, max_length=20)])
    assert found.result == "warn"
    assert "uses it as it is" in found.message
    assert {"x-max-length 10", "x-dead-letter-exchange dlx", "x-overflow none", "x-queue-type none"} <= set(
        found.message.split(" has ")[1].split(": the relay")[0].split(", ")
    )
    assert (await asked("transport.topology", url, queues=[Queue(name=name)], declare=False)).result == "warn"
    with channel(url) as broker:
        broker.queue_delete(name)
        broker.queue_declare(name, durable=True, arguments=Queue(name=name, max_length=20).all_arguments())
    assert (await asked("transport.topology", url, queues=[Queue(name=name, max_length=20)])).result == "pass"


async def test_a_queue_of_another_type_that_a_destination_names(url: str, name: str) -> None:
    to = {"orders": RabbitMQTransport.to(routing_key=name)}
    with channel(url) as broker:
        broker.queue_declare(name, durable=True)
    found = await asked("transport.topology", url, addresses=to)
    assert found.result == "warn"
    assert f"queue '{name}' has x-queue-type none: the relay uses it as it is" in found.message
    # Without declarations there is nothing that it could differ from.
    assert (await asked("transport.topology", url, addresses=to, declare=False)).result == "pass"


@pytest.mark.parametrize("lost", ["not durable", "auto-delete"])
async def test_a_queue_that_would_lose_events(url: str, name: str, lost: str) -> None:
    with channel(url) as broker:
        broker.queue_declare(name, durable=lost == "auto-delete", auto_delete=lost == "auto-delete")
    found = await asked("transport.topology", url, queues=[Queue(name=name)])
    assert found.result == "fail"
    assert "the relay sends nothing" in found.message
    assert (await asked("transport.queues", url, queues=[Queue(name=name)])).result == "fail"


@pytest.mark.parametrize(
    ("durable", "arguments", "result"),
    [
        (True, {"x-queue-type": "quorum"}, "pass"),
        (True, {"x-queue-type": "classic"}, "warn"),
        (True, {}, "warn"),
        (False, {}, "fail"),
    ],
)
async def test_a_queue_that_is_not_durable_is_reported(
    url: str, name: str, durable: bool, arguments: dict[str, str], result: str
) -> None:
    with channel(url) as broker:
        broker.queue_declare(name, durable=durable, arguments=arguments)
    found = await asked("transport.queues", url, addresses={"orders": RabbitMQTransport.to(routing_key=name)})
    assert (found.result, name in found.message) == (result, True)


async def test_checks_declare_nothing(url: str, name: str, rabbitmq_server: RabbitMQServer) -> None:
    before = names(rabbitmq_server, "rabbit_amqqueue")
    exchange = Exchange(name=name)
    async with aclosing(
        RabbitMQDiagnosis(
            url,
            exchanges=[exchange],
            queues=[Queue(name=name, max_length=3, bindings=[Binding(exchange=name)])],
            addresses={
                "orders": RabbitMQTransport.to(exchange=name),
                "mail": RabbitMQTransport.to(routing_key=f"{name}-mail"),
            },
        )
    ) as broker:
        found = [await check.ask() for check in broker.checks()]
    assert {answer.result for answer in found} == {"pass"}, found
    assert names(rabbitmq_server, "rabbit_amqqueue") == before
    assert name not in names(rabbitmq_server, "rabbit_exchange")


async def test_a_broker_that_does_not_confirm_fails(url: str, rabbitmq_server: RabbitMQServer) -> None:
    assert (await asked("transport.confirms", url)).result == "pass"
    async with (
        Proxy(rabbitmq_server.port) as proxy,
        aclosing(RabbitMQDiagnosis(f"amqp://guest:guest@127.0.0.1:{proxy.port}/", timeout="200ms")) as broker,
    ):
        assert (await ask(broker.checks(), "transport.reachable")).result == "pass"
        proxy.silence()
        found = await ask(broker.checks(), "transport.confirms")
    assert (found.result, "did not confirm" in found.message) == ("fail", True)


@pytest.fixture
async def limited(rabbitmq_server: RabbitMQServer) -> AsyncIterator[str]:
    """The URL of a user without permissions."""
    rabbitmq_server.add_user("doctor", "secret")
    rabbitmq_server.evaluate(
        """ok = rabbit_auth_backend_internal:set_permissions(
            <<"doctor">>, <<"/">>, <<"^$">>, <<"^$">>, <<"^$">>, <<"tests">>)"""
    )
    yield f"amqp://doctor:secret@127.0.0.1:{rabbitmq_server.port}/%2F"
    rabbitmq_server.delete_user("doctor")


async def test_a_user_without_permissions_gets_a_warning(limited: str, url: str, name: str) -> None:
    with channel(url) as broker:
        broker.queue_declare(name, durable=True)
    assert (await asked("transport.confirms", limited)).result == "warn"
    assert (await asked("transport.alarms", limited)).result == "pass"
    with pytest.raises(UnavailableError, match="ACCESS_REFUSED"):
        await asked("transport.queues", limited, addresses={"orders": RabbitMQTransport.to(routing_key=name)})


@pytest.fixture
def healed(rabbitmq_server: RabbitMQServer) -> Iterator[RabbitMQServer]:
    """The shared broker, without an alarm when the test ends."""
    yield rabbitmq_server
    rabbitmq_server.limit_memory(0.4)


async def test_a_resource_alarm_fails(healed: RabbitMQServer, url: str) -> None:
    healed.limit_memory(0.0000001)
    found = await asked("transport.alarms", url)
    assert (found.result, "low on memory" in found.message) == ("fail", True)
    with pytest.raises(UnavailableError, match="is blocked"):
        await asked("transport.confirms", url)
    healed.limit_memory(0.4)
    assert (await asked("transport.alarms", url)).result == "pass"
