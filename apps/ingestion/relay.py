"""The relay inside the service: to RabbitMQ, or, without a broker, straight to the two consumers."""

from __future__ import annotations

from sqlalchemy import Engine

from apps.ingestion.consumers.enrichment import enrichment
from apps.ingestion.consumers.validation import validation
from apps.ingestion.logs import log_consumer, log_relay
from apps.ingestion.topology import DESTINATIONS, EVENTS, QUEUES, ROUTES
from pillarbox import Exponential, Handlers, Relay, Tuning
from pillarbox.stores.postgres import PostgresStore
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.transports.rabbitmq import RabbitMQ

TUNING = Tuning(poll_interval="2s", batch_size=50)
RETRY = Exponential(base="10s", multiplier=2, max="1h", jitter="none", max_attempts=11)
NAME = "ingestion-service"


def relay_to_rabbitmq(store: PostgresStore | SqliteStore, broker: RabbitMQ) -> Relay:
    return Relay(
        store=store,
        transports={"rabbit": broker},
        destinations=DESTINATIONS,
        routes=ROUTES,
        retry=RETRY,
        tuning=TUNING,
        name=NAME,
        observers=[log_relay],
    )


def relay_to_consumers(store: PostgresStore | SqliteStore, engine: Engine) -> Relay:
    handlers = Handlers()
    for consumer in (validation(engine), enrichment(engine)):
        consumer.observe(log_consumer)
        handlers.add(consumer)
    return Relay(
        store=store,
        transports={"handlers": handlers},
        retry=RETRY,
        tuning=TUNING,
        name=NAME,
        observers=[log_relay],
    )


def open_broker(url: str) -> RabbitMQ:
    """It declares exchange, queues and bindings with its first connection."""
    return RabbitMQ(url, exchanges=[EVENTS], queues=QUEUES)
