"""Declares the topology on RabbitMQ at the start of a process that runs neither a relay nor a consumer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

from pillarbox import ConfigurationError, UnavailableError
from pillarbox.transports.rabbitmq import RabbitMQTransport

log = logging.getLogger(__name__)

PAUSE = 1.0
"""Seconds between two attempts."""


@asynccontextmanager
async def declaring(broker: RabbitMQTransport) -> AsyncIterator[None]:
    """Declare exchanges, queues and bindings in the background while the block runs; retries an unavailable broker."""
    async with aclosing(broker):
        task = asyncio.create_task(_declare(broker))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])


async def _declare(broker: RabbitMQTransport) -> None:
    last = ""
    while True:
        try:
            await broker.declare_topology()
        except UnavailableError as error:
            if str(error) != last:
                log.warning("RabbitMQ is unavailable, retrying every %g s: %s", PAUSE, error)
            last = str(error)
        except ConfigurationError as error:
            log.error("The topology on RabbitMQ differs from that of this service: %s", error)
            return
        else:
            log.info("Topology declared on RabbitMQ: exchanges, queues and bindings")
            return
        await asyncio.sleep(PAUSE)
