"""The queues of a drill on RabbitMQ: one per reader, behind an exchange that copies each message to both.

Another exchange is before that one: a single unbind between the two makes messages unroutable. With a binding for each
queue, a message could reach one of the readers and not the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pillarbox.core.clock import Duration
from pillarbox.core.errors import UnavailableError
from pillarbox.core.source import Source
from pillarbox.plugins import DrillQueue, Reader
from pillarbox.settings.tls import tls_grouped
from pillarbox.transports.rabbitmq.confirms import ChannelRefused
from pillarbox.transports.rabbitmq.connection import RabbitMQConnector
from pillarbox.transports.rabbitmq.plugin import BrokerEndpoint, RabbitMQAddress
from pillarbox.transports.rabbitmq.queue_reader import NOT_FOUND, ask
from pillarbox.transports.rabbitmq.source import RabbitMQSource
from pillarbox.transports.rabbitmq.topology import Binding, ConsumerQueues, Exchange, Queue
from pillarbox.transports.rabbitmq.transport import RabbitMQTransport

READERS: tuple[Reader, ...] = ("audit", "work")
RETRY_DELAYS: Sequence[Duration] = ("200ms", "1s")
PREFETCH = 50


class RabbitMQDrillQueue(DrillQueue):
    """Two fanout exchanges and two quorum queues, with the queues of their consumers."""

    redelivers_in_order = True
    detachable = True

    def __init__(self, url: str, options: Mapping[str, Any], name: str) -> None:
        self._name = name
        self._limits = {key: options[key] for key in ("heartbeat", "connect_timeout")}
        self._limits["tls"] = tls_grouped(options).get("tls")
        self._url, self._reply_timeout = url, options["send_timeout"]
        self._copies = f"{name}.copies"
        bound = [Binding(exchange=self._copies, routing_key="")]
        self.transport = self._broker = RabbitMQTransport(
            url,
            exchanges=[Exchange(name=exchange, type="fanout") for exchange in (name, self._copies)],
            queues=[Queue(name=f"{name}.{reader}", bindings=bound) for reader in READERS],
            declare=False,
            window=options["window"],
            send_timeout=self._reply_timeout,
            **self._limits,
        )
        self.address = RabbitMQAddress(exchange=name, routing_key="")
        self._connector = RabbitMQConnector(
            BrokerEndpoint.parse(url, self._limits["tls"]),
            heartbeat=self._limits["heartbeat"],
            connect_timeout=self._limits["connect_timeout"],
            reply_timeout=self._reply_timeout,
            what="drill",
        )

    @property
    def names(self) -> Sequence[str]:
        exchanges = [f"exchange {self._name}", f"exchange {self._copies}"]
        return [*exchanges, *(f"queue {queue}" for queue in self._queues())]

    def source(self, reader: Reader) -> Source:
        return RabbitMQSource(
            self._url,
            queue=Queue(name=f"{self._name}.{reader}"),
            prefetch=PREFETCH,
            retry_delays=RETRY_DELAYS,
            reply_timeout=self._reply_timeout,
            **self._limits,
        )

    async def existing(self) -> Sequence[str]:
        found = [f"queue {queue}" for queue in self._queues() if await self._exists("queue_declare", queue=queue)]
        for exchange in (self._name, self._copies):
            if await self._exists("exchange_declare", exchange=exchange):
                found.append(f"exchange {exchange}")
        return found

    async def create(self) -> None:
        await self._broker.declare_topology()
        await self.attach()

    async def drop(self) -> None:
        for queue in self._queues():
            await self._call("queue_delete", queue=queue)
        for exchange in (self._name, self._copies):
            await self._call("exchange_delete", exchange=exchange)

    async def detach(self) -> None:
        await self._call("exchange_unbind", destination=self._copies, source=self._name, routing_key="")

    async def attach(self) -> None:
        await self._call("exchange_bind", destination=self._copies, source=self._name, routing_key="")

    async def aclose(self) -> None:
        await self.transport.aclose()
        await self._connector.aclose()

    def _queues(self) -> list[str]:
        """The queues of both readers, with those for retries, quarantine and dead letters."""
        found: list[str] = []
        for reader in READERS:
            queues = ConsumerQueues.around(f"{self._name}.{reader}", RETRY_DELAYS)
            found += [queues.work.name, *(queue.name for queue in queues.auxiliary())]
        return found

    async def _call(self, method: str, **arguments: Any) -> None:
        connection = await self._connector.ready(())
        try:
            await self._connector.in_time(connection, ask(connection, method, **arguments))
        except ChannelRefused as refusal:
            raise UnavailableError(f"{method} {arguments}: {refusal}") from refusal

    async def _exists(self, method: str, **named: str) -> bool:
        connection = await self._connector.ready(())
        try:
            await self._connector.in_time(connection, ask(connection, method, passive=True, **named))
        except ChannelRefused as refusal:
            if refusal.code == NOT_FOUND:
                return False
            raise UnavailableError(str(refusal)) from refusal
        return True
