"""Assembles the relay of the deliveries: a transport, a destination and a circuit breaker for each channel.

Each channel has its own threads, so that a mail server that hangs does not delay push messages.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from apps.notifications.database import DELIVERY_TABLES, open_engine, open_store
from apps.notifications.delivery.email import Email
from apps.notifications.delivery.handling import Delivery, Send
from apps.notifications.delivery.in_app import show
from apps.notifications.delivery.log import DeliveryLog
from apps.notifications.delivery.settings import DeliverySettings
from apps.notifications.delivery.webhook import Webhook
from apps.notifications.domain import Channel
from pillarbox import ExponentialBackoff, Handlers, Relay, RelayConfig, Route
from pillarbox.observations import Observer
from pillarbox.telemetry.logs import RelayLog
from pillarbox.telemetry.opentelemetry import RelayTracing
from pillarbox.transports.handlers import HandlerAddress

RETRY = ExponentialBackoff(base="10s", max_delay="1h", max_attempts=8)
THREADS = 16
"""For each channel."""


@asynccontextmanager
async def delivering(
    url: str,
    settings: DeliverySettings,
    *,
    retry: ExponentialBackoff = RETRY,
    config: RelayConfig | None = None,
    observers: Sequence[Observer] = (),
) -> AsyncIterator[Relay]:
    """Create the relay and its resources; closes them at the end of the block. Raises ConfigurationError."""
    async with AsyncExitStack() as stack:
        store = open_store(url, tables=DELIVERY_TABLES)
        stack.push_async_callback(store.aclose)
        engine = open_engine(url, pool_size=THREADS)
        stack.callback(engine.dispose)
        push = Webhook(settings.push, address_of=lambda user: user.push_token)
        stack.callback(push.close)
        sms = Webhook(settings.sms, address_of=lambda user: user.phone)
        stack.callback(sms.close)
        channels: dict[Channel, Send] = {
            Channel.EMAIL: Email(settings.mail, sender=settings.sender).send,
            Channel.PUSH: push.send,
            Channel.SMS: sms.send,
            Channel.IN_APP: show,
        }
        deliveries = [Delivery(channel, send, DeliveryLog(engine)) for channel, send in channels.items()]
        transports = {delivery.name: _transport_of(delivery) for delivery in deliveries}
        for handlers in transports.values():
            stack.push_async_callback(handlers.aclose)
        yield Relay(
            store=store,
            transports=transports,
            destinations={name: HandlerAddress(transport=name, name=name) for name in transports},
            routes=[Route(event_type=delivery.event_type, to=[delivery.name]) for delivery in deliveries],
            retry=retry,
            config=config,
            name="delivery",
            observers=[RelayLog(), RelayTracing(), *observers],
        )


def _transport_of(delivery: Delivery) -> Handlers:
    # Each SMTP command has its own timeout, and a mail takes several commands.
    handlers = Handlers(timeout="2m", workers=THREADS)
    handlers.add(delivery)
    return handlers
