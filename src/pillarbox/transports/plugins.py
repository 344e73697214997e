"""The plugins of the built-in transports. A driver is imported only when its transport is opened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pillarbox.core.transport import Address, Transport
from pillarbox.plugins import TransportDiagnosis, TransportPlugin

if TYPE_CHECKING:
    from pillarbox.transports.rabbitmq import Exchange, Queue


class RabbitMQPlugin(TransportPlugin):
    """`amqp://…` and `amqps://…`; exchanges and queues are tables as in pillarbox.toml."""

    kind = "rabbitmq"
    default_routing = "each event to the durable queue named after its type on RabbitMQ"

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

        return RabbitMQDiagnosis(
            url,
            exchanges=_exchanges(options.get("exchanges", ())),
            queues=_queues(options.get("queues", ())),
            addresses={name: one for name, one in addresses.items() if isinstance(one, RabbitMQAddress)},
            declare=options.get("declare", True),
        )


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
