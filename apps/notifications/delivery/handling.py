"""The handler of one channel: asks the log, sends, writes the log. Who is at fault is the channel's to say."""

from __future__ import annotations

import logging
from collections.abc import Callable

from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as NoConnection

from apps.notifications.delivery.log import DeliveryLog, Recipient
from apps.notifications.delivery.request import DeliveryRequest
from apps.notifications.requests import event_type_of
from apps.notifications.words import Channel
from pillarbox import UnavailableError
from pillarbox.telemetry.opentelemetry import ConsumerTracing
from pillarbox.transports.handlers import HandlerContext, ReceivedEvent

logger = logging.getLogger("notifications.delivery")

Send = Callable[[DeliveryRequest, Recipient], None]
"""Returns once somebody else has taken responsibility. Raises PermanentError, RejectedError, UnavailableError."""


class Delivery:
    """A handler in the class form; its name is the destination that events wait under."""

    def __init__(self, channel: Channel, send: Send, deliveries: DeliveryLog) -> None:
        self.name = channel.lower()
        self.event_type = event_type_of(channel)
        self._send = send
        self._deliveries = deliveries
        self._tracing = ConsumerTracing()

    def handle(self, event: ReceivedEvent, context: HandlerContext) -> None:
        """Not async: it runs in a thread, and holds the user's place in line until it has really ended."""
        try:
            with self._tracing(event):
                self._deliver(DeliveryRequest.read(event), context.attempt)
        except (OperationalError, InterfaceError, NoConnection) as error:
            raise UnavailableError(f"the database is away: {type(error).__name__}") from error

    def _deliver(self, request: DeliveryRequest, attempt: int) -> None:
        to = self._deliveries.recipient_of(request)
        if to is None:
            logger.info("delivery %s was made before, skipping", request.delivery_id)
            return
        self._send(request, to)
        self._deliveries.write(request, attempt=attempt)
