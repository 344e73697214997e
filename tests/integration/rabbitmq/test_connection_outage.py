"""A broker that is restarted or killed: unavailable meanwhile, no accepted message is lost, and sending continues."""

import asyncio
from collections.abc import Callable

import pytest

from pillarbox.core.errors import UnavailableError
from pillarbox.core.transport import Outgoing, SendResult
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.testing.waiting import eventually
from pillarbox.transports.rabbitmq import Binding, Exchange, Queue, RabbitMQTransport
from pillarbox.transports.rabbitmq.topology import QueueType
from tests.integration.rabbitmq.conftest import MakeTransport
from tests.integration.rabbitmq.consumer import take_all
from tests.servers.rabbitmq import RabbitMQServer

Batch = Callable[..., list[Outgoing]]


@pytest.mark.parametrize("kind", ["quorum", "classic"])
async def test_a_killed_broker_loses_nothing_that_it_accepted(
    make: MakeTransport, victim: RabbitMQServer, queue: str, exchange: str, kind: QueueType
) -> None:
    bound = Queue(name=queue, type=kind, bindings=[Binding(exchange=exchange, routing_key="#")])
    transport = make(victim.url(), send_timeout="2s", exchanges=[Exchange(name=exchange)], queues=[bound])
    await transport.declare_topology()
    # RabbitMQ persists a new quorum queue half a second after it confirms the declaration, and loses it until then.
    victim.evaluate("[dets:sync(Table) || Table <- dets:all()]")
    outcomes: dict[str, SendResult] = {}
    over = asyncio.Event()

    async def up() -> bool:
        try:
            await transport.ping()
        except UnavailableError:
            return False
        return True

    async def stream(name: str) -> None:
        while not over.is_set():
            sent = [outgoing(f"{name}-{len(outcomes)}-{n}", RabbitMQTransport.to(exchange=exchange)) for n in range(50)]
            results = await transport.send(sent)
            outcomes.update(zip([one.message.event_id for one in sent], results, strict=True))
            if any(results):
                await eventually(up, within=60)

    async def some(outcome: type, since: int) -> int:
        async def seen() -> bool:
            return any(type(one) is outcome for one in list(outcomes.values())[since:])

        await eventually(seen, within=60)
        return len(outcomes)

    async with asyncio.TaskGroup() as group:
        group.create_task(stream("a"))
        group.create_task(stream("b"))
        healthy = await some(type(None), since=0)
        await asyncio.to_thread(victim.kill)
        down = await some(UnavailableError, since=healthy)
        await asyncio.to_thread(victim.start)
        await some(type(None), since=down)
        over.set()
    assert {type(outcome) for outcome in outcomes.values()} == {type(None), UnavailableError}
    accepted = {event_id for event_id, outcome in outcomes.items() if outcome is None}
    assert accepted <= {str(taken.properties.message_id) for taken in take_all(victim.url(), queue)}
