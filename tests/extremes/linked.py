"""A scene whose relays reach one of their servers through a link that tests can slow down, silence and cut."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from urllib.parse import urlsplit

from tests.extremes.links import (
    FaultyProxy,
    Loss,
    amqp_frame,
    http_response,
    is_accepted,
    is_confirm,
    is_entry_id,
    is_produce_reply,
    is_publish_ack,
    kafka_frame,
    nats_message,
    redis_reply,
)
from tests.extremes.receiving import WebhookReceiver, from_queue
from tests.extremes.scene import Scene
from tests.integration.kafka.topics import ids as record_ids
from tests.integration.kafka.topics import read_all
from tests.integration.nats.streams import stored_ids
from tests.integration.redis.reading import ids as entry_ids
from tests.servers.kafka import KafkaServer
from tests.servers.nats import NatsCluster, NatsServer
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.redis import RedisServer

Broker = RabbitMQServer | KafkaServer | NatsServer | NatsCluster | RedisServer | WebhookReceiver

STORES = ("postgres", "mariadb")
CONFIRMS: Mapping[str, Callable[[], Loss]] = {
    "rabbitmq": partial(Loss, size=amqp_frame, chosen=is_confirm),
    "kafka": partial(Loss, size=kafka_frame, chosen=is_produce_reply, names_address=True),
    "nats": partial(Loss, size=nats_message, chosen=is_publish_ack),
    # Redis numbers no replies: if one were missing, the client would take the next one for it.
    "redis": partial(Loss, size=redis_reply, chosen=is_entry_id, resets=True),
    "webhook": partial(Loss, size=http_response, chosen=is_accepted),
}
"""What each broker confirms with."""
SERVERS = (*CONFIRMS, *STORES)
WEBHOOK = """
[transports.hook]
url = "{url}"
allow_networks = ["127.0.0.0/8"]
"""
QUICK = {
    "RELAY__LEASE": "6s",
    "RELAY__SEND_TIMEOUT": "2s",
    "RELAY__HEARTBEAT_INTERVAL": "500ms",
    "STORE__STATEMENT_TIMEOUT": "3s",
}
"""Settings of a relay that soon notices a silent server."""


class Linked:
    """A scene with a link to one of its servers."""

    def __init__(
        self, scene: Scene, link: FaultyProxy, receive: Callable[[], list[str]], loss: Loss | None = None
    ) -> None:
        self.scene = scene
        self.link = link
        self.receive = receive
        self.loss = loss


def port_of(url: str) -> int:
    """Return the port of a server's address."""
    port = urlsplit(url).port
    assert port is not None, url
    return port


def received(broker: Broker, name: str) -> list[str]:
    """Return the event ids of a queue, topic or stream, in its order; the order of a topic is that of each key."""
    if isinstance(broker, RabbitMQServer):
        return from_queue(broker.url(), name)
    if isinstance(broker, KafkaServer):
        return record_ids(read_all(broker.bootstrap, name))
    if isinstance(broker, NatsServer | NatsCluster):
        return asyncio.run(stored_ids(broker.url(), name))
    if isinstance(broker, WebhookReceiver):
        return [event_id for event_id, _ in broker.received]
    return entry_ids(broker, name)
