"""The consumer's side of the broker, with a client that is not ours."""

from __future__ import annotations

import pika
import pika.exceptions

from tests.integration.rabbitmq.consumer import channel

_LAST = "the-end"
_PATIENCE = 30.0


def take(url: str, queue: str) -> list[str]:
    """The ids of everything in a queue that nobody sends to, in order; nothing if there is no such queue.

    A last message of our own tells where the end is: a queue is first in, first out, its count only an estimate.
    """
    ids: list[str] = []
    with channel(url) as source:
        source.confirm_delivery()
        try:
            last = pika.BasicProperties(message_id=_LAST, delivery_mode=2)
            source.basic_publish("", queue, b"", last, mandatory=True)
        except pika.exceptions.UnroutableError:
            return []
        source.basic_qos(prefetch_count=1000)
        for method, properties, _ in source.consume(queue, auto_ack=True, inactivity_timeout=_PATIENCE):
            if method is None or properties is None:
                raise AssertionError(f"{queue}: the last message did not come within {_PATIENCE:g} s")
            if properties.message_id == _LAST:
                break
            ids.append(str(properties.message_id))
        source.cancel()
    return ids


def delete(url: str, queue: str) -> None:
    """The queue, and the exchange of the same name if there is one."""
    with channel(url) as source:
        source.queue_delete(queue)
        source.exchange_delete(queue)


def unbind(url: str, queue: str) -> None:
    """Take it from the exchange of the same name."""
    with channel(url) as source:
        source.queue_unbind(queue, queue, "events")
