"""The consumer's side of the broker, with pika."""

from __future__ import annotations

import pika
import pika.exceptions

from tests.integration.rabbitmq.consumer import channel, publish_confirmed

_LAST = "the-end"
_TIMEOUT = 30.0


def take_all(url: str, queue: str) -> list[str]:
    """Return the ids of everything in a queue that no relay sends to, in order, and delete the queue."""
    arrived: list[str] = []
    while taken := _take(url, queue):
        arrived += taken
    _delete(url, queue)
    return arrived


def _take(url: str, queue: str) -> list[str]:
    """Return what the queue has; nothing if it does not exist.

    A last message published here marks the end: a queue is first in, first out, and its count is only an estimate.
    """
    ids: list[str] = []
    with channel(url) as source:
        source.confirm_delivery()
        try:
            last = pika.BasicProperties(message_id=_LAST, delivery_mode=2)
            publish_confirmed(source, "", queue, b"", last)
        except pika.exceptions.UnroutableError:
            return []
        source.basic_qos(prefetch_count=1000)
        for method, properties, _ in source.consume(queue, auto_ack=True, inactivity_timeout=_TIMEOUT):
            if method is None or properties is None:
                raise AssertionError(f"{queue}: the last message did not come within {_TIMEOUT:g} s")
            if properties.message_id == _LAST:
                break
            ids.append(str(properties.message_id))
        source.cancel()
    return ids


def _delete(url: str, queue: str) -> None:
    """Delete the queue, and the exchange of the same name if it exists."""
    with channel(url) as source:
        source.queue_delete(queue)
        source.exchange_delete(queue)


def unbind(url: str, queue: str) -> None:
    """Unbind the queue from the exchange of the same name."""
    with channel(url) as source:
        source.queue_unbind(queue, queue, "events")
