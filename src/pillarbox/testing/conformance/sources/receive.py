"""Messages for the tests, and functions that receive them: with a timeout, and through an outage."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from pillarbox.core.errors import UnavailableError
from pillarbox.core.source import Delivery, Incoming, Source
from pillarbox.testing.conformance.sources.harness import SourceDeadLetter, SourceHarness
from pillarbox.testing.waiting import eventually

BOUND = 90.0
"""Seconds within which an expected message must arrive."""
SOON = 0.05
"""Seconds of a short delay."""


def incoming(
    event_id: str | None,
    *,
    body: bytes = b"{}",
    event_type: str | None = "thing.happened",
    content_type: str | None = "application/json",
    headers: Mapping[str, str] | None = None,
) -> Incoming:
    """Return a message as a producer sends it."""
    return Incoming(
        event_id=event_id,
        event_type=event_type,
        body=body,
        content_type=content_type,
        correlation_id="correlation",
        headers=headers or {},
    )


async def take(source: Source) -> Delivery:
    """Return the next message. Raises TimeoutError."""
    async with asyncio.timeout(BOUND):
        return await source.receive()


async def take_through_outages(source: Source) -> Delivery:
    """Return the next message, through any number of outages, as a consumer does."""
    async with asyncio.timeout(BOUND):
        while True:
            try:
                return await source.receive()
            except UnavailableError:
                await asyncio.sleep(0.02)


async def taken_ids(source: Source, number: int) -> list[str | None]:
    """Return the ids of the next messages, each acknowledged."""
    ids: list[str | None] = []
    for _ in range(number):
        delivery = await take_through_outages(source)
        ids.append(delivery.incoming.event_id)
        await delivery.ack()
    return ids


async def wait_for_dead_letters(harness: SourceHarness, number: int) -> list[SourceDeadLetter]:
    """Return the dead letters once there are that many."""

    async def found_all() -> list[SourceDeadLetter] | None:
        found = await harness.dead()
        return found if len(found) >= number else None

    return await eventually(found_all, within=BOUND) or []
