"""The private RabbitMQ: a confirmed persistent message survives the broker's process."""

from collections.abc import Iterator

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from tests.servers.rabbitmq import RabbitMQServer


@pytest.fixture
def survivor(rabbitmq_server: RabbitMQServer) -> Iterator[str]:
    """A durable queue with one confirmed persistent message in it."""
    with pika.BlockingConnection(pika.URLParameters(rabbitmq_server.url())) as connection:
        channel = connection.channel()
        channel.queue_declare("survivor", durable=True)
        channel.confirm_delivery()
        persistent = pika.BasicProperties(delivery_mode=pika.DeliveryMode.Persistent.value)
        channel.basic_publish("", "survivor", b"still here", persistent, mandatory=True)
    yield "survivor"
    with pika.BlockingConnection(pika.URLParameters(rabbitmq_server.url())) as connection:
        connection.channel().queue_delete("survivor")


def _take(server: RabbitMQServer, queue: str) -> bytes | None:
    with pika.BlockingConnection(pika.URLParameters(server.url())) as connection:
        channel: BlockingChannel = connection.channel()
        _, _, body = channel.basic_get(queue, auto_ack=True)
        return body


@pytest.fixture(scope="module")
def rabbitmq_server(victim: RabbitMQServer) -> RabbitMQServer:
    """A broker that the test may restart and kill."""
    return victim


def test_a_confirmed_message_survives_a_restart(rabbitmq_server: RabbitMQServer, survivor: str) -> None:
    rabbitmq_server.restart()
    assert _take(rabbitmq_server, survivor) == b"still here"


def test_a_confirmed_message_survives_a_kill(rabbitmq_server: RabbitMQServer, survivor: str) -> None:
    # The broker persists a new queue a moment after it confirmed messages in it.
    rabbitmq_server.evaluate("mnesia:dump_log()")
    rabbitmq_server.kill()
    rabbitmq_server.start()
    assert _take(rabbitmq_server, survivor) == b"still here"


def test_rabbitmqctl_speaks_to_this_node(rabbitmq_server: RabbitMQServer, survivor: str) -> None:
    assert rabbitmq_server.evaluate("node()") == f"'{rabbitmq_server.node}'"
    assert "survivor\t1" in rabbitmq_server.ctl("list_queues", "name", "messages")
