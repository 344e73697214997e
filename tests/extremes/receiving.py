"""The consumer's side of each transport, with a client of the tests' own: event ids in the order of arrival."""

from __future__ import annotations

import pika
from pika.exceptions import UnroutableError

from tests.integration.rabbitmq.consumer import channel, publish_confirmed

_LAST = "the-end"
_TIMEOUT = 60.0


def from_queue(url: str, queue: str) -> list[str]:
    """The ids of everything in a queue to which no relay sends at the moment; the queue is empty afterwards.

    A last message marks the end: a queue is first in, first out, and its count is only an estimate.
    """
    ids: list[str] = []
    with channel(url) as source:
        source.confirm_delivery()
        try:
            publish_confirmed(source, "", queue, b"", pika.BasicProperties(message_id=_LAST, delivery_mode=2))
        except UnroutableError:
            return []
        source.basic_qos(prefetch_count=100)
        for method, properties, _ in source.consume(queue, auto_ack=True, inactivity_timeout=_TIMEOUT):
            if method is None or properties is None:
                raise AssertionError(f"{queue}: the last message did not arrive within {_TIMEOUT:g} s")
            if properties.message_id == _LAST:
                break
            ids.append(str(properties.message_id))
        source.cancel()
    return ids
