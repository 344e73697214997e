"""The far side of the broker, seen with a client that is not ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pika
from pika.adapters.blocking_connection import BlockingChannel


class Taken(NamedTuple):
    """A message as a consumer gets it."""

    properties: pika.BasicProperties
    body: bytes


@contextmanager
def channel(url: str) -> Iterator[BlockingChannel]:
    """A channel of a connection of its own, to look and meddle with.

    Ask for confirms (`confirm_delivery`) before you publish more than one message: when the channel closes behind
    unconfirmed ones, a quorum queue may keep the first and lose the others.
    """
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        yield connection.channel()


def take_all(url: str, queue: str) -> list[Taken]:
    """Everything in the queue, which is empty afterwards."""
    taken: list[Taken] = []
    with channel(url) as source:
        while True:
            method, properties, body = source.basic_get(queue, auto_ack=True)
            if method is None or properties is None or body is None:
                return taken
            taken.append(Taken(properties, body))
