"""Handles a message in one transaction: admits it, resolves recipients, saves notifications, requests deliveries.

Invariants: notifications, delivery requests and the inbox record are committed together, and the message is acked after
the commit. The number of statements does not depend on the number of recipients.
"""

from __future__ import annotations

import logging
from typing import Any, ClassVar

from prometheus_client import CollectorRegistry
from sqlalchemy import Connection

from apps.notifications.domain import Audience
from apps.notifications.message import NotificationMessage
from apps.notifications.metrics import ListenerMetrics
from apps.notifications.orchestration.orchestrator import Clock, Notification, NotificationOrchestrator, utc_now
from apps.notifications.orchestration.recipients import NoRecipients
from apps.notifications.orchestration.wording import wording_of
from apps.notifications.requests import delivery_of, outbox
from apps.notifications.saving import save
from pillarbox import Consumer
from pillarbox.adapters import Source
from pillarbox.inbox import BodyFields, ConsumedEvent
from pillarbox.telemetry.consumer_logs import ConsumerLog
from pillarbox.telemetry.opentelemetry import ConsumerTracing

logger = logging.getLogger("notifications.listener")

FIELDS = BodyFields(
    event_id="event_id", event_type="event_type", aggregate_type="aggregate_type", aggregate_id="aggregate_id"
)
"""The body fields to use if a message has no properties, for example from Spring's `convertAndSend`."""


class NotificationListener:
    """The listener of one audience. `consumer` runs on a source, or as a handler of a relay on the same database."""

    audience: ClassVar[Audience]

    def __init__(
        self,
        transaction: Any,
        *,
        source: Source | None = None,
        clock: Clock = utc_now,
        workers: int = 10,
        metrics: ListenerMetrics | None = None,
    ) -> None:
        """
        transaction: the engine, or any other transaction factory that `Consumer` accepts.
        metrics: by default the listener uses metrics that are not exported.
        """
        self.orchestrator = NotificationOrchestrator(self.audience, clock=clock)
        self._clock = clock
        self._metrics = metrics or ListenerMetrics(CollectorRegistry())
        self.consumer = Consumer(
            source,
            name=self.audience.queue,
            transaction=transaction,
            body_fields=FIELDS,
            workers=workers,
            observers=[ConsumerLog()],
            around=ConsumerTracing(),
        )
        self.consumer.on("*")(self.handle)

    def handle(self, connection: Connection, event: ConsumedEvent) -> None:
        """Handle one event. Raises PermanentError for an event that can never succeed."""
        message = NotificationMessage.read(event)
        try:
            notifications = self.orchestrator.disaggregate(connection, message)
        except NoRecipients as error:
            logger.warning("%s", error)
            self._metrics.unaddressed(self.audience)
            return
        wording = wording_of(message)
        saved = save(connection, message, wording, notifications, now=self._clock())
        deliveries = []
        for notification in notifications:
            number = saved.get((notification.user_id, notification.channel))
            if number is None:
                _log_duplicate(message, notification)
            else:
                deliveries.append(delivery_of(message, wording, notification, notification_id=number).caused_by(event))
                self._metrics.saved(self.audience, notification.channel)
        outbox.record(connection, *deliveries)


def _log_duplicate(message: NotificationMessage, notification: Notification) -> None:
    logger.debug(
        "notification already exists, skipping: event_id=%s user_id=%s channel=%s",
        message.event_id,
        notification.user_id,
        notification.channel,
    )
