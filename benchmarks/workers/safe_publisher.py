"""What every peer publishes with: aio-pika, persistent, mandatory, confirmed; a message without a queue is an error."""

from __future__ import annotations

from typing import Any

import aio_pika


async def open_exchange(url: str) -> tuple[Any, Any]:
    """A connection, and the default exchange of a channel with confirms."""
    connection = await aio_pika.connect_robust(url)
    channel = await connection.channel(publisher_confirms=True, on_return_raises=True)
    return connection, channel.default_exchange


async def publish(exchange: Any, queue: str, body: bytes, message_id: str) -> None:
    """Returns once the broker has confirmed it."""
    message = aio_pika.Message(
        body,
        content_type="application/json",
        delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
        message_id=message_id,
        type="order.placed",
    )
    await exchange.publish(message, queue, mandatory=True)
