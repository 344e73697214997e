"""A URL with several nodes: a node that accepts connections and confirms nothing is left for the next one."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from pillarbox.core.errors import UnavailableError
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.transports.rabbitmq import RabbitMQTransport
from tests.extremes.links import FaultyProxy, Loss, amqp_frame, is_confirm
from tests.integration.rabbitmq.conftest import MakeTransport
from tests.servers.rabbitmq import RabbitMQServer

FOREVER = 1_000_000


@pytest.fixture
def unconfirming(rabbitmq_server: RabbitMQServer) -> Iterator[FaultyProxy]:
    """A node as it is in the minority of a cluster: it answers, but its quorum queues confirm nothing."""
    loss = Loss(size=amqp_frame, chosen=is_confirm, left=FOREVER)
    with closing(FaultyProxy(rabbitmq_server.port, loss)) as link:
        yield link


async def test_a_node_that_confirms_nothing_is_left_for_the_next_one(
    make: MakeTransport, rabbitmq_server: RabbitMQServer, unconfirming: FaultyProxy, queue: str
) -> None:
    nodes = f"127.0.0.1:{unconfirming.port},127.0.0.1:{rabbitmq_server.port}"
    transport = make(f"amqp://guest:guest@{nodes}/", send_timeout="2s")
    message = outgoing("event", RabbitMQTransport.to(routing_key=queue))

    [stuck] = await transport.send([message])
    assert isinstance(stuck, UnavailableError)
    assert f"127.0.0.1:{unconfirming.port}" in str(stuck)
    assert await transport.send([message]) == [None]
