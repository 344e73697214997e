"""A server that is killed or restarted, and a cluster whose leader is killed: nothing accepted is lost, nothing is
stored twice, and sending continues."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import aclosing, asynccontextmanager, suppress
from functools import partial

import nats.errors
import pytest

from pillarbox import Destination, Event, Outbox, Relay, Route
from pillarbox.core.errors import UnavailableError
from pillarbox.core.observations import Observation, Sending
from pillarbox.core.transport import SendResult
from pillarbox.stores.memory import MemoryStore
from pillarbox.testing.conformance.sources.receive import take_through_outages
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.testing.waiting import eventually
from pillarbox.transports.nats import NatsSource, NatsTransport
from tests.integration.nats.conftest import MakeTransport
from tests.integration.nats.streams import jetstream, stored_ids
from tests.integration.rabbitmq.proxy import Proxy
from tests.servers.availability import available
from tests.servers.nats import NatsCluster, NatsServer

SUBJECT = "things"
KEYS = 4


class Sender:
    """Sends as a relay with strict ordering does: one message per key at a time, each until it is accepted."""

    def __init__(self, transport: NatsTransport) -> None:
        self._transport = transport
        self.next = dict.fromkeys(range(KEYS), 0)
        self.accepted: list[str] = []
        self.failures = 0
        self.over = False

    async def run(self) -> None:
        while not self.over:
            sent = [outgoing(f"{key}-{number}", NatsTransport.to(subject=SUBJECT)) for key, number in self.next.items()]
            for key, one, result in zip(self.next, sent, await self._transport.send(sent), strict=True):
                if result is None:
                    self.accepted.append(one.message.event_id)
                    self.next[key] += 1
                else:
                    assert isinstance(result, UnavailableError), result
                    self.failures += 1
                    await asyncio.sleep(0)

    async def progress(self, number: int = 50) -> None:
        """Wait for so many further messages."""
        goal = len(self.accepted) + number

        async def enough() -> bool:
            return len(self.accepted) >= goal

        await eventually(enough, within=60)


@asynccontextmanager
async def sending(transport: NatsTransport) -> AsyncIterator[Sender]:
    sender = Sender(transport)
    task = asyncio.create_task(sender.run())
    try:
        yield sender
        sender.over = True
        async with asyncio.timeout(60):
            await task
    finally:
        task.cancel()


def of_key(key: int, ids: Iterable[str]) -> list[int]:
    return [int(one.partition("-")[2]) for one in ids if one.startswith(f"{key}-")]


def check(accepted: list[str], found: list[str]) -> None:
    """Nothing lost, nothing twice, each key in order."""
    assert set(accepted) <= set(found)
    assert len(found) == len(set(found))
    for key in range(KEYS):
        assert of_key(key, found) == sorted(of_key(key, found))


async def test_a_killed_server_loses_and_reorders_nothing_that_it_accepted(
    make: MakeTransport, private_nats: NatsServer
) -> None:
    async with sending(make(private_nats.url(), send_timeout="2s")) as sender:
        for _ in range(3):
            await sender.progress()
            await asyncio.to_thread(private_nats.kill)
            await asyncio.to_thread(private_nats.start)
        await sender.progress()
    assert sender.failures
    check(sender.accepted, await stored_ids(private_nats.url(), SUBJECT))


class Batches:
    """Sends batches of one key, as a relay with pipelined ordering does, until a message is not accepted."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.results: dict[str, SendResult] = {}

    async def send(self, transport: NatsTransport) -> None:
        while not any(self.results.values()):
            first = len(self.sent)
            batch = [outgoing(f"{n}", NatsTransport.to(subject=SUBJECT)) for n in range(first, first + 500)]
            ids = [one.message.event_id for one in batch]
            self.sent += ids
            self.results.update(zip(ids, await transport.send(batch), strict=True))

    async def interrupted_by_kill(self, transport: NatsTransport, server: NatsServer) -> None:
        async def some() -> bool:
            return len(self.results) >= 1000

        async with asyncio.TaskGroup() as group:
            group.create_task(self.send(transport))
            await eventually(some, within=60)
            await asyncio.to_thread(server.kill)

    @property
    def accepted(self) -> set[str]:
        return {one for one, result in self.results.items() if result is None}


async def test_of_a_batch_that_a_kill_interrupts_a_message_is_stored_only_if_all_before_it_are(
    make: MakeTransport, private_nats: NatsServer
) -> None:
    """Pipelined ordering: all messages of a batch have one key, and the connection is lost in the middle."""
    batches = Batches()
    await batches.interrupted_by_kill(make(private_nats.url(), send_timeout="2s"), private_nats)
    await asyncio.to_thread(private_nats.start)
    found = await stored_ids(private_nats.url(), SUBJECT)
    assert found == batches.sent[: len(found)]
    assert batches.accepted <= set(found)


async def test_a_restarted_server_is_used_again(make: MakeTransport, private_nats: NatsServer) -> None:
    async with sending(make(private_nats.url(), send_timeout="2s")) as sender:
        await sender.progress()
        await asyncio.to_thread(private_nats.restart)
        await sender.progress()
    check(sender.accepted, await stored_ids(private_nats.url(), SUBJECT))


@pytest.fixture
def cluster() -> Iterator[NatsCluster]:
    with available(NatsCluster) as cluster:
        yield cluster


async def leader_of(url: str) -> str:
    async with jetstream(url) as server:
        info = await server.stream_info(SUBJECT)
    assert info.cluster is not None
    return str(info.cluster.leader)


async def put(transport: NatsTransport, event_id: str) -> None:
    """Send a message until the cluster stores it."""

    async def accepted() -> bool:
        try:
            return await transport.send([outgoing(event_id, NatsTransport.to(subject=SUBJECT))]) == [None]
        except UnavailableError:
            return False

    await eventually(accepted, within=60)


async def test_a_cluster_whose_leader_is_killed_loses_nothing_and_stores_nothing_twice(
    make: MakeTransport, cluster: NatsCluster
) -> None:
    transport = make(cluster.url(), send_timeout="3s", replicas=3)
    await put(transport, "first-0")
    async with sending(transport) as sender:
        await sender.progress()
        leader = cluster.servers[await leader_of(cluster.url())]
        await asyncio.to_thread(leader.kill)
        await sender.progress()
        await asyncio.to_thread(leader.start)
        await sender.progress()
    found = await stored_ids(cluster.url(), SUBJECT)
    check(sender.accepted, [one for one in found if one != "first-0"])


async def stored_in(cluster: NatsCluster) -> list[str]:
    """What the stream has, once the cluster answers: after the loss of a server it elects its leaders.

    A new leader may not yet show what the one before it confirmed. It does as soon as it stores another message.
    """
    found: list[str] = []

    async def answers() -> bool:
        try:
            found[:] = await stored_ids(cluster.url(), SUBJECT)
        except nats.errors.Error:
            return False
        return bool(found)

    await eventually(answers, within=90)
    return found


@pytest.mark.parametrize("connected_to", ["leader", "follower"])
async def test_what_holds_of_a_batch_during_which_the_leader_is_killed(
    make: MakeTransport, cluster: NatsCluster, connected_to: str
) -> None:
    """Pipelined ordering. The connection is lost with the leader, or only the leader is lost."""
    everywhere = make(cluster.url(), send_timeout="3s", replicas=3)
    await put(everywhere, "first")
    leader = await leader_of(cluster.url())
    connected = leader if connected_to == "leader" else next(name for name in cluster.servers if name != leader)
    transport = make(cluster.servers[connected].url(), send_timeout="3s", declare=False)
    batches = Batches()
    await batches.interrupted_by_kill(transport, cluster.servers[leader])
    left = [one for one in batches.sent if one not in batches.accepted]
    await put(everywhere, "second")
    [_, *stored] = await stored_in(cluster)
    stored.remove("second")
    assert batches.accepted <= set(stored)
    if connected_to == "leader":
        assert stored == batches.sent[: len(stored)]

    async def all_accepted() -> bool:
        again = [outgoing(one, NatsTransport.to(subject=SUBJECT)) for one in left]
        results = await everywhere.send(again)
        left[:] = [one for one, result in zip(left, results, strict=True) if result is not None]
        return not left

    await eventually(all_accepted, within=60)
    assert sorted(await stored_in(cluster)) == sorted(["first", "second", *batches.sent])


async def test_a_consumer_receives_everything_although_the_leader_of_its_stream_is_killed(
    make: MakeTransport, cluster: NatsCluster
) -> None:
    transport = make(cluster.url(), send_timeout="3s", replicas=3)
    ids = [f"e{n}" for n in range(40)]
    left = {one: outgoing(one, NatsTransport.to(subject=SUBJECT)) for one in ids}

    async def all_sent() -> bool:
        results = await transport.send(list(left.values()))
        for one, result in zip(list(left), results, strict=True):
            if result is None:
                del left[one]
        return not left

    await eventually(all_sent, within=60)
    received: set[str] = set()
    async with aclosing(NatsSource(cluster.url(), subject=SUBJECT, ack_wait="3s", reply_timeout="3s")) as source:
        killed = False
        async with asyncio.timeout(90):
            while received != set(ids):
                delivery = await take_through_outages(source)
                received.add(str(delivery.incoming.event_id))
                with suppress(UnavailableError):
                    await delivery.ack()
                if not killed and len(received) >= 15:
                    killed = True
                    await asyncio.to_thread(cluster.servers[await leader_of(cluster.url())].kill)


async def test_a_pipelined_key_stays_in_order_through_lost_connections(
    make: MakeTransport, private_nats: NatsServer
) -> None:
    store, count = MemoryStore(), 3000
    with store.transaction() as transaction:
        events = [Event("thing.happened", b"x", event_id=f"{n}", key="hot") for n in range(count)]
        Outbox().record(transaction, *events)
    batches: list[int] = []

    def observe(observation: Observation) -> None:
        if isinstance(observation, Sending):
            batches.append(len(observation.messages))

    def delivered(number: int) -> bool:
        return len(store._tables.history) >= number

    async with Proxy(private_nats.port) as proxy:
        transport = make(f"nats://127.0.0.1:{proxy.port}", send_timeout="2s")
        relay = Relay(
            store=store,
            transports={"nats": transport},
            destinations={"hot": Destination(NatsTransport.to(subject=SUBJECT), ordering="pipelined")},
            routes=[Route(to=["hot"])],
            observers=[observe],
        )
        async with relay:
            for number in (1, 1000, 2000):
                await eventually(partial(delivered, number), within=60)
                await proxy.reset()
            await eventually(partial(delivered, count), within=60)
    assert max(batches) > 1
    assert await stored_ids(private_nats.url(), SUBJECT) == [f"{n}" for n in range(count)]


async def test_a_lost_connection_fails_what_is_unconfirmed_and_keeps_no_task(
    make: MakeTransport, private_nats: NatsServer
) -> None:
    before = len(asyncio.all_tasks())
    transport = make(private_nats.url())
    assert await transport.send([outgoing("a", NatsTransport.to(subject=SUBJECT))]) == [None]
    await asyncio.to_thread(private_nats.kill)

    async def nothing_left() -> bool:
        return len(asyncio.all_tasks()) <= before

    await eventually(nothing_left, within=60)
