"""The handler of one channel: checks the delivery log, sends, and writes the log."""

from __future__ import annotations

import logging
from collections.abc import Callable

from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as NoConnection

from apps.notifications.delivery.log import DeliveryLog, Recipient
from apps.notifications.delivery.request import DeliveryRequest
from apps.notifications.domain import Channel
from apps.notifications.requests import event_type_of
from pillarbox import UnavailableError
from pillarbox.telemetry.opentelemetry import ConsumerTracing
from pillarbox.transports.handlers import HandlerContext, ReceivedEvent

logger = logging.getLogger("notifications.delivery")

Send = Callable[[DeliveryRequest, Recipient], None]
"""Returns when the server or gateway has accepted it. Raises PermanentError, RejectedError, UnavailableError."""


class Delivery:
    """A handler; its name is the destination of its events."""

    def __init__(self, channel: Channel, send: Send, deliveries: DeliveryLog) -> None:
        self.name = channel.lower()
        self.event_type = event_type_of(channel)
        self._send = send
        self._deliveries = deliveries
        self._tracing = ConsumerTracing()

    def handle(self, event: ReceivedEvent, context: HandlerContext) -> None:
        """Not async: it runs in a thread, and later events of the user wait until it has returned."""
        try:
            with self._tracing(event):
                self._deliver(DeliveryRequest.read(event), context.attempt)
        except (OperationalError, InterfaceError, NoConnection) as error:
            raise UnavailableError(f"the database is unavailable: {type(error).__name__}") from error

    def _deliver(self, request: DeliveryRequest, attempt: int) -> None:
        to = self._deliveries.recipient_of(request)
        if to is None:
            logger.info("delivery %s already completed, skipping", request.delivery_id)
            return
        self._send(request, to)
        self._deliveries.write(request, attempt=attempt)
