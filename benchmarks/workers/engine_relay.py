"""A relay from any SQL store to any transport, until nothing is pending: `{"store": …, "transport": …, "name": …}`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any

from benchmarks.workers.control import Control, job
from pillarbox import Destination, Relay, Route, open_store, open_transport
from pillarbox.core.transport import Address, Outgoing, Pace, SendResult, Transport
from pillarbox.ops.cli.relay import collect_rarely


class AcceptingTransport:
    """Confirms everything at once: what remains is the work of the store and the relay."""

    pace = Pace(in_order=True)
    address_type = Address

    def defaults(self, event_type: str) -> Mapping[str, Address]:
        return {}

    async def send(self, batch: Sequence[Outgoing]) -> list[SendResult]:
        return [None] * len(batch)

    async def ping(self) -> None:
        pass

    async def aclose(self) -> None:
        pass


def opened(kind: str, url: str, name: str) -> tuple[Transport, Address]:
    """The transport, and the address of the topic, subject, stream or queue."""
    match kind:
        case "rabbitmq":
            from pillarbox.transports.rabbitmq import RabbitMQTransport

            return open_transport(url, declare=False), RabbitMQTransport.to(exchange="", routing_key=name)
        case "kafka":
            from pillarbox.transports.kafka import KafkaTransport

            return open_transport(url), KafkaTransport.to(topic=name)
        case "nats":
            from pillarbox.transports.nats import NatsTransport

            return open_transport(url, declare=False), NatsTransport.to(subject=name)
        case "redis":
            from pillarbox.transports.redis import RedisTransport

            return open_transport(url), RedisTransport.to(stream=name)
        case "webhook":
            from pillarbox.transports.webhook import WebhookTransport

            return open_transport(url, allow_networks=["127.0.0.0/8"], secrets=["whsec_" + "QUFB" * 8]), (
                WebhookTransport.to()
            )
        case _:
            return AcceptingTransport(), Address()


async def run(work: dict[str, Any]) -> None:
    control = Control()
    transport, address = opened(work["kind"], work["transport"], work["name"])
    destination = Destination(address, **work.get("destination", {}))
    store = open_store(work["store"], history=False, ledger=False)
    async with aclosing(store), aclosing(transport):
        await transport.ping()
        relay = Relay(
            store=store,
            transports={"out": transport},
            destinations={"orders": destination},
            routes=[Route(to=["orders"])],
        )
        collect_rarely()
        await control.ready()
        await relay.run_until_empty()
        control.report(finished=time.monotonic())


if __name__ == "__main__":
    asyncio.run(run(job()))
