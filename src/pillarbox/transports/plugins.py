"""The plugins of the built-in transports. A driver is imported only when its transport is opened."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pillarbox.admin.broker_dead_letters import BrokerDeadLetters
from pillarbox.core.clock import Duration
from pillarbox.core.transport import Address, Transport
from pillarbox.plugins import ScratchQueue, TransportDiagnosis, TransportPlugin

if TYPE_CHECKING:
    from pillarbox.transports.rabbitmq import Exchange, Queue

SCRATCH_EXPIRES = 600_000
"""Milliseconds after which the broker deletes the unused queue of a benchmark that was killed."""


class RabbitMQPlugin(TransportPlugin):
    """`amqp://…` and `amqps://…`; exchanges and queues are tables as in pillarbox.toml."""

    kind = "rabbitmq"
    default_routing = "each event to the durable queue named after its type on RabbitMQ"
    pipelined = True
    dead_letter_queues = True
    scratch_queues = True

    def open(self, url: str, options: Mapping[str, Any]) -> Transport:
        from pillarbox.transports.rabbitmq import RabbitMQTransport

        given = dict(options)
        exchanges, queues = _exchanges(given.pop("exchanges", ())), _queues(given.pop("queues", ()))
        return RabbitMQTransport(url, exchanges=exchanges, queues=queues, **given)

    def address(self, destination: str, options: Mapping[str, Any]) -> Address:
        from pillarbox.transports.rabbitmq import RabbitMQTransport

        return RabbitMQTransport.to(**options)

    def diagnosis(
        self, url: str, options: Mapping[str, Any], addresses: Mapping[str, Address]
    ) -> TransportDiagnosis | None:
        from pillarbox.transports.rabbitmq import RabbitMQAddress
        from pillarbox.transports.rabbitmq.diagnosis import RabbitMQDiagnosis
        from pillarbox.transports.rabbitmq.topology import RabbitMQOptions

        return RabbitMQDiagnosis(
            url,
            exchanges=_exchanges(options.get("exchanges", ())),
            queues=_queues(options.get("queues", ())),
            addresses={name: one for name, one in addresses.items() if isinstance(one, RabbitMQAddress)},
            declare=options.get("declare", RabbitMQOptions.declare),
        )

    def dead_letters(
        self, url: str, options: Mapping[str, Any], *, timeout: Duration | None = None
    ) -> BrokerDeadLetters:
        from pillarbox.transports.rabbitmq import RabbitMQDeadLetters

        return RabbitMQDeadLetters(
            url,
            heartbeat=options["heartbeat"],
            connect_timeout=timeout or options["connect_timeout"],
            answer_timeout=timeout or options["send_timeout"],
        )

    def queues(
        self, options: Mapping[str, Any], destinations: Mapping[str, Mapping[str, Any]]
    ) -> Mapping[str, str | None]:
        declared = {
            queue.name: None if queue.dead_letter is None else queue.dead_letter.queue
            for queue in _queues(options.get("queues", ()))
        }
        addressed = [to["routing_key"] for to in destinations.values() if not to["exchange"]]
        return declared | {name: declared.get(name) for name in addressed if "{" not in name}

    def scratch(self, url: str, options: Mapping[str, Any], name: str) -> ScratchQueue:
        return _RabbitMQScratch(url, options, name)


class _RabbitMQScratch:
    """A quorum queue on the default exchange."""

    def __init__(self, url: str, options: Mapping[str, Any], name: str) -> None:
        from pillarbox.transports.rabbitmq import Queue, RabbitMQTransport

        self._url, self._name = url, name
        queue = Queue(name=name, arguments={"x-expires": SCRATCH_EXPIRES})
        limits = {key: options[key] for key in ("window", "send_timeout", "heartbeat", "connect_timeout")}
        self.transport = RabbitMQTransport(url, queues=[queue], **limits)
        self.address = RabbitMQTransport.to(exchange="", routing_key=name)

    async def drop(self) -> None:
        await asyncio.to_thread(self._delete_queue)

    def _delete_queue(self) -> None:
        import pika
        from pika.exceptions import AMQPError

        from pillarbox.transports.rabbitmq.connection import endpoint_of

        endpoint = endpoint_of(self._url)
        parameters = pika.ConnectionParameters(
            host=endpoint.host,
            port=endpoint.port,
            virtual_host=endpoint.vhost,
            credentials=pika.PlainCredentials(endpoint.user, endpoint.password),
            ssl_options=None if endpoint.tls is None else pika.SSLOptions(endpoint.tls, endpoint.host),
        )
        try:
            with pika.BlockingConnection(parameters) as connection:
                connection.channel().queue_delete(self._name)
        except AMQPError:
            return  # the queue expires by itself


class HandlerPlugin(TransportPlugin):
    """Handlers of the application: there is no URL, `import` in the settings names the object."""

    kind = "handlers"
    default_routing = "each event to every handler of its type in {}"

    def address(self, destination: str, options: Mapping[str, Any]) -> Address:
        from pillarbox.transports.handlers import HandlerAddress

        return HandlerAddress(name=options.get("handler") or destination)

    def diagnosis(
        self, url: str, options: Mapping[str, Any], addresses: Mapping[str, Address]
    ) -> TransportDiagnosis | None:
        return None


class StdoutPlugin(TransportPlugin):
    """`stdout://`."""

    kind = "stdout"
    default_routing = "each event to standard output"

    def open(self, url: str, options: Mapping[str, Any]) -> Transport:
        from pillarbox.transports.stdout import StdoutTransport

        return StdoutTransport()

    def address(self, destination: str, options: Mapping[str, Any]) -> Address:
        from pillarbox.transports.stdout import StdoutAddress

        return StdoutAddress()

    def diagnosis(
        self, url: str, options: Mapping[str, Any], addresses: Mapping[str, Address]
    ) -> TransportDiagnosis | None:
        return None


class MemoryPlugin(TransportPlugin):
    """`memory://`."""

    kind = "memory"
    default_routing = "each event to a list in this process"

    def open(self, url: str, options: Mapping[str, Any]) -> Transport:
        from pillarbox.transports.memory import MemoryTransport

        return MemoryTransport()

    def address(self, destination: str, options: Mapping[str, Any]) -> Address:
        from pillarbox.transports.memory import MemoryAddress

        return MemoryAddress(name=destination)

    def diagnosis(
        self, url: str, options: Mapping[str, Any], addresses: Mapping[str, Address]
    ) -> TransportDiagnosis | None:
        return None


def _exchanges(given: Any) -> list[Exchange]:
    from pillarbox.transports.rabbitmq import Exchange

    return [one if isinstance(one, Exchange) else Exchange(**one) for one in given]


def _queues(given: Any) -> list[Queue]:
    from pillarbox.transports.rabbitmq import Binding, DeadLetter, Queue

    queues: list[Queue] = []
    for one in given:
        if isinstance(one, Queue):
            queues.append(one)
            continue
        table = dict(one)
        dead = table.get("dead_letter")
        table["bindings"] = [Binding(**binding) for binding in table.get("bindings", ())]
        table["dead_letter"] = None if dead is None else DeadLetter(**dead)
        queues.append(Queue(**table))
    return queues
