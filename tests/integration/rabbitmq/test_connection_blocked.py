"""A broker short of memory or disk blocks its publishers: the transport notices, and resumes after the alarm."""

import asyncio
import uuid
from collections.abc import Callable, Iterator
from contextlib import aclosing

import pytest

from pillarbox.core.errors import UnavailableError
from pillarbox.core.transport import Outgoing
from pillarbox.testing.waiting import eventually
from pillarbox.transports.rabbitmq import RabbitMQSource
from pillarbox.transports.rabbitmq.topology import work_queue
from tests.integration.consume.broker import publish
from tests.integration.rabbitmq.conftest import MakeTransport
from tests.integration.rabbitmq.consumer import channel
from tests.integration.rabbitmq.proxy import Proxy
from tests.servers.rabbitmq import RabbitMQServer

Batch = Callable[..., list[Outgoing]]
Limit = Callable[[RabbitMQServer], None]

MEMORY: tuple[Limit, Limit] = (lambda broker: broker.limit_memory(0.0000001)), (lambda broker: broker.limit_memory(0.4))
DISK: tuple[Limit, Limit] = (lambda broker: broker.limit_disk("1000000GB")), (lambda broker: broker.limit_disk("10MB"))


@pytest.fixture
def healed(victim: RabbitMQServer) -> Iterator[RabbitMQServer]:
    yield victim
    for _, end in (MEMORY, DISK):
        end(victim)


@pytest.mark.parametrize(("alarm", "end", "reason"), [(*MEMORY, "low on memory"), (*DISK, "low on disk")])
async def test_an_alarm_and_its_end_are_noticed(
    make: MakeTransport, healed: RabbitMQServer, batch: Batch, alarm: Limit, end: Limit, reason: str
) -> None:
    async with Proxy(healed.port) as proxy:
        transport = make(f"amqp://guest:guest@127.0.0.1:{proxy.port}/", send_timeout="60s")
        assert await transport.send(batch(5, "before")) == [None] * 5
        alarm(healed)
        results = await transport.send(batch(5, "noticed"))
        assert {type(result) for result in results} == {UnavailableError}
        assert f"is blocked ({reason})" in str(results[0])
        with pytest.raises(UnavailableError, match="is blocked"):
            await transport.ping()
        assert {type(result) for result in await transport.send(batch(5, "refused"))} == {UnavailableError}

        end(healed)

        async def goes_on() -> bool:
            return await transport.send(batch(5, "after")) == [None] * 5

        await eventually(goes_on)
        assert proxy.accepted == 1


async def test_a_transport_to_a_blocked_broker_can_be_closed(
    make: MakeTransport, healed: RabbitMQServer, batch: Batch
) -> None:
    transport = make(healed.url())
    await transport.send(batch(1))
    alarm, _ = MEMORY
    alarm(healed)
    [result] = await transport.send(batch(1))
    assert isinstance(result, UnavailableError)
    await transport.aclose()


async def test_a_move_that_was_blocked_leaves_no_channel_open(healed: RabbitMQServer) -> None:
    work, url = f"test-{uuid.uuid4().hex[:12]}", healed.url()
    alarm, end = MEMORY
    async with aclosing(RabbitMQSource(url, queue=work, retry_delays=["1min"])) as source:
        await source.declare_topology()
        publish(url, work_queue(work), "e1")
        delivery = await source.receive()
        alarm(healed)
        retrying = asyncio.create_task(delivery.retry(delay=60, reason="not yet"))
        await eventually(lambda: (moving := source._republisher._channel) is not None and moving.failure is not None)
        end(healed)
        await retrying
        # One receives and one moves.
        await eventually(lambda: healed.evaluate("length(rabbit_channel:list())") == "2")
    with channel(url) as broker:
        for name in (work, *(f"{work}.{part}" for part in ("dlq", "quarantine", "wait.1min"))):
            broker.queue_delete(name)
