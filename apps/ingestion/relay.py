"""The embedded relay: it publishes to RabbitMQ or, without a broker, calls the two consumers."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Engine

from apps.ingestion.consumers.enrichment import enrichment
from apps.ingestion.consumers.validation import validation
from apps.ingestion.logs import log_consumer, log_relay
from apps.ingestion.publisher import Publisher
from apps.ingestion.topology import DESTINATIONS, EVENTS, QUEUES, ROUTES
from apps.runtime.stores import Store
from pillarbox import Handlers, Relay
from pillarbox.observations import ConsumerObserver, Observer
from pillarbox.telemetry.opentelemetry import RelayTracing
from pillarbox.transports.rabbitmq import RabbitMQTransport

NAME = "ingestion-service"


def relay_to_rabbitmq(
    store: Store, broker: RabbitMQTransport, publisher: Publisher, observers: Sequence[Observer] = ()
) -> Relay:
    return Relay(
        store=store,
        transports={"rabbit": broker},
        destinations=DESTINATIONS,
        routes=ROUTES,
        retry=publisher.retry,
        config=publisher.config,
        name=NAME,
        observers=[log_relay, RelayTracing(), *observers],
    )


def relay_to_consumers(
    store: Store,
    engine: Engine,
    publisher: Publisher,
    observers: Sequence[Observer] = (),
    consumer_observers: Sequence[ConsumerObserver] = (),
) -> Relay:
    handlers = Handlers()
    for consumer in (validation(engine), enrichment(engine)):
        for observer in (log_consumer, *consumer_observers):
            consumer.observe(observer)
        handlers.add(consumer)
    return Relay(
        store=store,
        transports={"handlers": handlers},
        retry=publisher.retry,
        config=publisher.config,
        name=NAME,
        observers=[log_relay, RelayTracing(), *observers],
    )


def open_broker(url: str) -> RabbitMQTransport:
    """The transport declares exchange, queues and bindings when it connects."""
    return RabbitMQTransport(url, exchanges=[EVENTS], queues=QUEUES)
