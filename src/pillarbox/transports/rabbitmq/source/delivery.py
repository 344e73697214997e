"""One message in hand. It is acked where it came from only after it is safe wherever it goes."""

from __future__ import annotations

from pillarbox.core.source import Incoming
from pillarbox.transports.rabbitmq.received import Encoded
from pillarbox.transports.rabbitmq.source.headers import delivery_count, failed, incoming_of, moved
from pillarbox.transports.rabbitmq.source.intake import Arrival, Intake
from pillarbox.transports.rabbitmq.source.queues import Queues
from pillarbox.transports.rabbitmq.source.republisher import Republisher

SUSPECT = 2
"""A message that was given out so often and never answered is isolated."""


class RabbitMQDelivery:
    """See `pillarbox.core.source.Delivery`."""

    def __init__(self, arrival: Arrival, *, intake: Intake, mover: Republisher, queues: Queues) -> None:
        self._arrival = arrival
        self._intake = intake
        self._republisher = mover
        self._queues = queues
        self._incoming: Incoming | None = None

    @property
    def incoming(self) -> Incoming:
        # Not a cached_property, which pyright does not accept as the property of a protocol.
        if self._incoming is None:
            self._incoming = incoming_of(self._arrival.properties, self._arrival.body)
        return self._incoming

    @property
    def quarantined(self) -> bool:
        return self._arrival.queue == self._queues.suspects

    @property
    def crashes(self) -> int:
        return self._given_out if self.quarantined else 0

    @property
    def suspect(self) -> bool:
        """Whether it should be isolated, and is not yet. A classic queue counts only to one."""
        return not self.quarantined and self._given_out >= (SUSPECT if self._queues.work.type == "quorum" else 1)

    @property
    def _given_out(self) -> int:
        return delivery_count(self._arrival.properties, redelivered=self._arrival.redelivered)

    async def ack(self) -> None:
        self._intake.ack(self._arrival.tag)

    async def retry(self, *, delay: float, reason: str, counted: bool = True) -> None:
        await self._move(self._queues.waiting(delay), self._failed(reason, counted=counted))

    async def reject(self, reason: str) -> None:
        await self._move(self._queues.dead, self._failed(reason, counted=True))

    async def isolate(self) -> None:
        """Have it come again where one message at a time is given out."""
        await self._move(self._queues.suspects, moved(self._arrival.properties, frame_max=self._intake.frame_max))

    def _failed(self, reason: str, *, counted: bool) -> Encoded:
        return failed(
            self._arrival.properties,
            self.incoming,
            queue=self._queues.work.name,
            reason=reason,
            counted=counted,
            frame_max=self._intake.frame_max,
        )

    async def _move(self, queue: str, properties: Encoded) -> None:
        await self._republisher.move(queue, properties, self._arrival.body, wanted=lambda: self._intake.alive)
        await self.ack()
