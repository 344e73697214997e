"""Each engine of the fault matrix in a scene: a store with RabbitMQ, or a transport with PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.extremes import handling
from tests.extremes.databases import connected
from tests.extremes.linked import port_of
from tests.extremes.links import Condition, FaultyProxy
from tests.extremes.receiving import WebhookReceiver, from_queue
from tests.extremes.scene import Scene
from tests.integration.kafka import topics
from tests.integration.nats.streams import stored_ids
from tests.integration.redis.reading import ids as entry_ids
from tests.servers.kafka import KafkaServer
from tests.servers.nats import NatsServer
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.redis import RedisServer

STORES = ("postgres", "mariadb", "sqlite")
TRANSPORTS = ("rabbitmq", "kafka", "nats", "redis", "webhook", "handlers")
ENGINES = (*STORES, *TRANSPORTS)
ONE_PLACE = """
[destinations.all]
transport = "it"
{address}

[[routes]]
to = ["all"]
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A transport of relays, and what arrived there."""

    settings: Mapping[str, str]
    received: Callable[[str], list[str]]
    """Takes the name of the queue, topic or stream; returns event ids in the order of arrival."""
    create: Callable[[str], object] = lambda _: None
    """Creates what the relay cannot create itself."""
    address: str = ""
    """The setting of a destination with that name, which is {name} in it."""
    tables: str = ""
    """Further settings for such a destination."""

    def one_place(self, name: str) -> str:
        """A settings file with which events of every type go to the same queue, topic, stream, URL or handler."""
        return (self.tables + ONE_PLACE).format(address=self.address.format(name=name), name=name)


Outage = Callable[[], AbstractContextManager[None]]


class Access:
    """The way from relays to the engine under test. Without a server there are no connections to break."""

    locks_writers = False
    """Whether nothing can be recorded during an outage."""

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return 0

    @property
    def outages(self) -> Sequence[Outage]:
        """All kinds of outages."""
        return (self.down, self.hole)

    def down(self) -> AbstractContextManager[None]:
        """Make the engine unavailable while the block is open."""
        raise NotImplementedError

    def hole(self) -> AbstractContextManager[None]:
        """Hold back every byte while the block is open."""
        raise NotImplementedError

    def reset(self) -> None:
        """Break every connection."""


class Proxied(Access):
    """A link through a proxy."""

    def __init__(self, proxy: FaultyProxy) -> None:
        self._proxy = proxy

    @property
    def connections(self) -> int:
        return self._proxy.connections

    def down(self) -> AbstractContextManager[None]:
        return self._proxy.down()

    def hole(self) -> AbstractContextManager[None]:
        return self._proxy.condition(Condition(hole="both"))

    def reset(self) -> None:
        self._proxy.reset()


class ToMock(Access):
    """The mock cluster of Kafka names its own ports to clients: it drops connections, and delays replies, itself."""

    def __init__(self, server: KafkaServer) -> None:
        self._server = server
        self._ports = {int(address.rpartition(":")[2]) for address in server.bootstrap.split(",")}

    @property
    def connections(self) -> int:
        fields = (row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:])
        return sum(int(remote[-4:], 16) in self._ports and state == "01" for _, _, remote, state, *_ in fields)

    @contextmanager
    def down(self) -> Iterator[None]:
        self._server.down()
        try:
            yield
        finally:
            self._server.up()

    @contextmanager
    def hole(self) -> Iterator[None]:
        self._server.tell("rtt", 60_000)
        try:
            yield
        finally:
            self._server.tell("rtt", 0)
            self.reset()  # the replies that it holds back already keep their delay

    def reset(self) -> None:
        with self.down():
            pass


class LockedFile(Access):
    """SQLite is a file: another process locks it for longer than a statement waits."""

    locks_writers = True

    def __init__(self, url: str) -> None:
        self._url = url

    @property
    def outages(self) -> Sequence[Outage]:
        return (self.down,)

    @contextmanager
    def down(self) -> Iterator[None]:
        with connected(self._url) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            yield
            connection.rollback()


class FailingHandlers(Access):
    """Handlers reject every event."""

    def __init__(self, folder: Path) -> None:
        self._refused = folder / handling.REFUSED

    @property
    def outages(self) -> Sequence[Outage]:
        return (self.down,)

    @contextmanager
    def down(self) -> Iterator[None]:
        self._refused.touch()
        try:
            yield
        finally:
            self._refused.unlink()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """A scene on one engine: a store with RabbitMQ, or a transport with PostgreSQL. Writers do not use the link."""

    engine: str
    scene: Scene
    target: Target
    link: Access

    def received(self) -> list[str]:
        return self.target.received(self.scene.event_type)


@contextmanager
def opened_target(request: pytest.FixtureRequest, kind: str, folder: Path) -> Iterator[tuple[Target, Access]]:
    """The transport of a scene in this folder, and the link to it."""
    match kind:
        case "webhook":
            with closing(WebhookReceiver()) as receiver, proxied(receiver.url()) as (url, link):
                settings = {"TRANSPORTS__IT__URL": url, "TRANSPORTS__IT__ALLOW_NETWORKS": "127.0.0.0/8"}
                yield Target(settings=settings, received=lambda _: [one for one, _ in receiver.received]), link
        case "handlers":
            arrivals = folder / handling.ARRIVALS
            yield (
                Target(
                    settings={"TRANSPORTS__IT__IMPORT": "tests.extremes.handling:noting"},
                    received=lambda _: arrivals.read_text().split(),
                    address='handler = "noting"',
                ),
                FailingHandlers(folder),
            )
        case "kafka":
            server: KafkaServer = request.getfixturevalue("kafka_server")
            yield _kafka(server, {"TRANSPORTS__IT__URL": server.url()}), ToMock(server)
        case _:
            broker = request.getfixturevalue(f"{kind}_server")
            with proxied(broker.url()) as (url, link):
                yield _BROKERS[kind](broker, {"TRANSPORTS__IT__URL": url}), link


@contextmanager
def opened_store(request: pytest.FixtureRequest, kind: str) -> Iterator[tuple[str, str, Access]]:
    """The URL of a store for writers, that for relays, and the link of the latter."""
    url = str(request.getfixturevalue(f"{kind}_url"))
    if kind == "sqlite":
        yield url, url, LockedFile(url)
        return
    with proxied(url) as (through, link):
        yield url, through, link


@contextmanager
def proxied(url: str) -> Iterator[tuple[str, Access]]:
    with closing(FaultyProxy(port_of(url))) as proxy:
        yield url.replace(f":{port_of(url)}", f":{proxy.port}"), Proxied(proxy)


def _rabbitmq(server: RabbitMQServer, settings: Mapping[str, str]) -> Target:
    return Target(
        settings=settings,
        received=lambda name: from_queue(server.url(), name),
        address='routing_key = "{name}"',
        tables='[[transports.it.queues]]\nname = "{name}"\n',
    )


def _kafka(server: KafkaServer, settings: Mapping[str, str]) -> Target:
    return Target(
        settings=settings,
        received=lambda name: topics.ids(topics.read_all(server.bootstrap, name)),
        create=server.create_topic,
        address='topic = "{name}"',
        tables='[transports.it.client]\n"compression.type" = "zstd"\n',
    )


def _nats(server: NatsServer, settings: Mapping[str, str]) -> Target:
    return Target(
        settings=settings,
        received=lambda name: asyncio.run(stored_ids(server.url(), name)),
        address='subject = "{name}"',
    )


def _redis(server: RedisServer, settings: Mapping[str, str]) -> Target:
    return Target(settings=settings, received=lambda name: entry_ids(server, name), address='stream = "{name}"')


_BROKERS: Mapping[str, Callable[[Any, Mapping[str, str]], Target]] = {
    "rabbitmq": _rabbitmq,
    "nats": _nats,
    "redis": _redis,
}
