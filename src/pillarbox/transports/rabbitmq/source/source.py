"""A queue of RabbitMQ to work off.

Nothing reconnects behind its back: once a connection is lost, `receive` raises UnavailableError, and the next `receive`
opens a new one and declares everything again.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence

from pillarbox.core.clock import Duration, SystemClock, seconds
from pillarbox.core.errors import UnavailableError
from pillarbox.transports.rabbitmq.channel import ChannelRefused
from pillarbox.transports.rabbitmq.connection_manager import ConnectionManager, at_least_one, positive
from pillarbox.transports.rabbitmq.endpoint import Endpoint, endpoint_of
from pillarbox.transports.rabbitmq.source.delivery import RabbitMQDelivery
from pillarbox.transports.rabbitmq.source.intake import Intake
from pillarbox.transports.rabbitmq.source.queues import WAITS, Queues
from pillarbox.transports.rabbitmq.source.republisher import Republisher
from pillarbox.transports.rabbitmq.topology import Declaration, Exchange, Queue


class RabbitMQSource:
    """See `pillarbox.core.source.Source`. Makes no connection until something is received or declared.

    `queue` is the name of a durable quorum queue, or a Queue with its bindings; `prefetch` is the most that is in hand
    at once; `waits` are the delays there are: a retry waits for the shortest that is long enough. Without `declare`
    nothing is ever declared by receiving. Raises ConfigurationError.
    """

    def __init__(
        self,
        url: str,
        *,
        queue: str | Queue,
        exchanges: Sequence[Exchange] = (),
        prefetch: int = 10,
        waits: Sequence[Duration] = WAITS,
        declare: bool = True,
        answer_timeout: Duration = "10s",
        heartbeat: Duration = "30s",
        connect_timeout: Duration = "10s",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._endpoint: Endpoint = endpoint_of(url, tls)
        self._queues = Queues.around(queue, waits)
        self._declarations = self._queues.declarations(exchanges)
        self._declared: Sequence[Declaration] = self._declarations if declare else ()
        self._prefetch = at_least_one("prefetch", prefetch)
        self._connections, outward = (
            ConnectionManager(
                self._endpoint,
                heartbeat=seconds(heartbeat, field="heartbeat"),
                connect_timeout=positive("connect_timeout", connect_timeout),
                answer_timeout=positive("answer_timeout", answer_timeout),
                what="source",
            )
            for _ in range(2)
        )
        self._republisher = Republisher(self._endpoint, outward, self._declared, SystemClock())
        self._intake: Intake | None = None

    def __repr__(self) -> str:
        return f"<RabbitMQSource {self._queues.work.name!r} at {self._endpoint}>"

    async def receive(self) -> RabbitMQDelivery:
        while True:
            intake = await self._opened()
            try:
                arrival = await intake.next()
            except UnavailableError as lost:
                intake.end(lost)
                raise
            delivery = RabbitMQDelivery(arrival, intake=intake, mover=self._republisher, queues=self._queues)
            if not delivery.suspect:
                return delivery
            await delivery.isolate()

    async def connect(self) -> None:
        await self._opened()

    async def declare_topology(self) -> None:
        """Declare everything, whatever `declare` says. Raises UnavailableError, and ConfigurationError with the
        difference if something exists that is not what the configuration says."""
        await self._connections.declare(self._declarations)

    async def aclose(self) -> None:
        """Say goodbye and close; what is not answered goes back to the queue. Closing twice is fine."""
        await self._connections.aclose()
        await self._republisher.aclose()

    async def _opened(self) -> Intake:
        if self._intake is not None and self._intake.alive:
            return self._intake
        link = await self._connections.ready(self._declared)
        intake = Intake(self._endpoint, link)
        prefetch = {self._queues.work.name: self._prefetch, self._queues.suspects: 1}
        try:
            await self._connections.in_time(link, intake.open(prefetch))
        except ChannelRefused as refusal:
            lost = UnavailableError(
                f"queue {self._queues.work.name!r} at {self._endpoint} gives out nothing: {refusal}"
            )
            link.let_go(lost)
            raise lost from refusal
        self._intake = intake
        return intake
