"""The receiving side of the broker, read with pika itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pika
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import NackError

from tests.servers.waiting import wait_until


class Taken(NamedTuple):
    """A message as a consumer gets it."""

    properties: pika.BasicProperties
    body: bytes


@contextmanager
def channel(url: str) -> Iterator[BlockingChannel]:
    """A channel of its own connection, to inspect and change the broker.

    Ask for confirms (`confirm_delivery`, `publish_confirmed`) before you publish more than one message: when the
    channel closes behind unconfirmed ones, a quorum queue may keep the first and lose the others.
    """
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        yield connection.channel()


def publish_confirmed(
    broker: BlockingChannel, exchange: str, key: str, body: bytes, properties: pika.BasicProperties | None = None
) -> None:
    """Publish with `confirm_delivery` until the broker accepts: a new quorum queue may have no leader."""

    def is_accepted() -> bool:
        try:
            broker.basic_publish(exchange, key, body, properties, mandatory=True)
        except NackError:
            return False
        return True

    wait_until(is_accepted, bound=60, what=f"{key} accepts a message")


def take_all(url: str, queue: str) -> list[Taken]:
    """Everything in the queue, which is empty afterwards."""
    taken: list[Taken] = []
    with channel(url) as source:
        while True:
            method, properties, body = source.basic_get(queue, auto_ack=True)
            if method is None or properties is None or body is None:
                return taken
            taken.append(Taken(properties, body))
