"""Queues named after event types: declared several at a time, without delaying messages for known queues."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from pillarbox import Event, Outbox, Relay
from pillarbox.core.errors import PermanentError, RejectedError, UnavailableError
from pillarbox.core.observations import EventDelivered, Observation
from pillarbox.core.transport import Outgoing
from pillarbox.stores.memory import MemoryStore
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.testing.waiting import eventually
from pillarbox.transports.rabbitmq import Exchange, Queue, RabbitMQTransport, transport
from pillarbox.transports.rabbitmq.declaring import OnExisting, SecondDeclaration, declare
from pillarbox.transports.rabbitmq.driver import Channel
from pillarbox.transports.rabbitmq.topology import Declaration
from tests.integration.rabbitmq.conftest import MakeTransport
from tests.integration.rabbitmq.consumer import channel, take_all
from tests.integration.rabbitmq.proxy import Proxy

NewName = Callable[[], str]


async def _nothing() -> None:
    return


class Declares:
    """Records the declarations of queues: names, channels, how many at once; can pause them."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.channels: set[Channel] = set()
        self.at_once = 0
        self.most_at_once = 0
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()
        self.before: Callable[[], Awaitable[None]] = _nothing

    async def __call__(
        self, over: Channel, declarations: Sequence[Declaration | SecondDeclaration], on_existing: OnExisting
    ) -> list[Declaration | SecondDeclaration]:
        self.names += [one.name for one in declarations if isinstance(one, Queue)]
        self.channels.add(over)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await self.before()
        await self.may_go_on.wait()
        try:
            return await declare(over, declarations, on_existing)
        finally:
            self.at_once -= 1


@pytest.fixture
def declares(monkeypatch: pytest.MonkeyPatch) -> Declares:
    seen = Declares()
    monkeypatch.setattr(transport, "declare", seen)
    return seen


def batch_for(names: Sequence[str]) -> list[Outgoing]:
    return [outgoing(f"e{n}", RabbitMQTransport.to(routing_key=name)) for n, name in enumerate(names)]


async def test_new_queues_are_declared_several_at_a_time_over_a_few_channels(
    make: MakeTransport, new_name: NewName, declares: Declares
) -> None:
    names = [new_name() for _ in range(20)]
    assert await make().send(batch_for(names)) == [None] * 20
    assert sorted(declares.names) == sorted(names)
    assert 1 < declares.most_at_once <= transport.CHANNELS
    assert len(declares.channels) <= transport.CHANNELS


async def test_messages_for_known_queues_do_not_wait_for_new_ones(
    make: MakeTransport, url: str, new_name: NewName, declares: Declares
) -> None:
    broker, known = make(), new_name()
    assert await broker.send(batch_for([known])) == [None]
    take_all(url, known)
    declares.may_go_on.clear()
    sending = asyncio.create_task(broker.send(batch_for([new_name(), known])))

    assert len(await eventually(lambda: take_all(url, known))) == 1
    assert not sending.done()
    declares.may_go_on.set()
    assert await sending == [None, None]


async def test_sends_that_wait_for_new_queues_occupy_no_part_of_the_window(
    make: MakeTransport, new_name: NewName, declares: Declares
) -> None:
    broker, known = make(window=1), new_name()
    assert await broker.send(batch_for([known])) == [None]
    batches = broker.pace.concurrency
    declares.may_go_on.clear()
    sending = [asyncio.create_task(broker.send(batch_for([new_name()]))) for _ in range(batches)]
    await eventually(lambda: declares.at_once == 1 and broker.pace.concurrency == 2 * batches)
    assert await broker.send(batch_for([known])) == [None]
    declares.may_go_on.set()
    assert await asyncio.gather(*sending) == [[None]] * batches
    assert broker.pace.concurrency == batches


async def test_new_event_types_do_not_delay_known_ones(
    make: MakeTransport, new_name: NewName, declares: Declares
) -> None:
    store, known, broker = MemoryStore(), new_name(), make()
    delivered: list[str] = []

    def record(event_type: str) -> None:
        with store.transaction() as transaction:
            Outbox().record(transaction, Event(event_type, {}))

    def observe(observation: Observation) -> None:
        if isinstance(observation, EventDelivered):
            delivered.append(observation.message.event_type)

    async with Relay(store=store, transports={"broker": broker}, observers=[observe]):
        record(known)
        await eventually(lambda: delivered == [known])
        declares.may_go_on.clear()
        concurrency = broker.pace.concurrency
        new = [new_name() for _ in range(concurrency)]
        for number, event_type in enumerate(new, start=1):
            record(event_type)
            # A send that waits for a new queue makes room for another one.
            await eventually(lambda number=number: broker.pace.concurrency == concurrency + number)  # type: ignore[misc]
        record(known)
        await eventually(lambda: delivered == [known, known])
        declares.may_go_on.set()
        await eventually(lambda: sorted(delivered[2:]) == sorted(new))


async def test_a_connection_lost_among_many_new_queues_keeps_the_earlier_ones(
    make: MakeTransport,
    url: str,
    proxy: Proxy,
    proxied: str,
    new_name: NewName,
    declares: Declares,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transport, "NEW_QUEUES", 2)
    broker, names = make(proxied), [new_name() for _ in range(5)]

    async def cut() -> None:
        if len(declares.names) == 3:
            await proxy.cut()

    declares.before = cut
    results = await broker.send(batch_for(names))
    assert [type(result) for result in results] == [type(None)] * 2 + [UnavailableError] * 3
    assert [len(take_all(url, name)) for name in names[:2]] == [1, 1]
    await proxy.heal()

    async def all_are_sent() -> bool:
        return await broker.send(batch_for(names)) == [None] * 5

    await eventually(all_are_sent)


async def test_an_unroutable_event_declares_no_queue_again(
    make: MakeTransport, exchange: str, new_name: NewName, declares: Declares
) -> None:
    broker, names = make(exchanges=[Exchange(name=exchange)]), [new_name() for _ in range(3)]
    assert await broker.send(batch_for(names)) == [None] * 3
    declares.names.clear()
    results = await broker.send([outgoing("lost", RabbitMQTransport.to(exchange=exchange)), *batch_for(names)])
    assert [type(result) for result in results] == [RejectedError] + [type(None)] * 3
    assert await broker.send(batch_for(names)) == [None] * 3
    assert declares.names == []


async def test_only_the_deleted_queue_is_declared_again(
    make: MakeTransport, url: str, new_name: NewName, declares: Declares
) -> None:
    broker, names = make(), [new_name() for _ in range(3)]
    assert await broker.send(batch_for(names)) == [None] * 3
    declares.names.clear()
    with channel(url) as administrator:
        administrator.queue_delete(names[1])
    assert [type(result) for result in await broker.send(batch_for(names))] == [type(None), RejectedError, type(None)]
    assert await broker.send(batch_for(names)) == [None] * 3
    assert declares.names == [names[1]]


async def test_an_invalid_queue_name_fails_only_its_own_message(make: MakeTransport, queue: str) -> None:
    bad = outgoing("bad", RabbitMQTransport.to(), event_type="line\nbreak")
    results = await make().send([bad, *batch_for([queue])])
    assert [type(result) for result in results] == [PermanentError, type(None)]
    assert "control character" in str(results[0])


async def test_whatever_text_an_event_type_may_have_can_name_a_queue(make: MakeTransport, url: str, queue: str) -> None:
    names = [f"{queue}{text}" for text in ("\u00a0", "\u200d", "\U0001f468\u200d\U0001f467", " ", "%", "#*")]
    batch = [outgoing("e", RabbitMQTransport.to(), event_type=Event(name, {}).event_type) for name in names]
    try:
        assert await make().send(batch) == [None] * len(names)
    finally:
        with channel(url) as broker:
            for name in names:
                broker.queue_delete(name)
