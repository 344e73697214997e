"""Messages for the suite's tests, and the ways to take them: within a bound, and through an outage."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from pillarbox.core.errors import UnavailableError
from pillarbox.core.source import Delivery, Incoming, Source
from pillarbox.testing.conformance.sources.harness import Letter, SourceHarness
from pillarbox.testing.waiting import eventually

BOUND = 90.0
"""Seconds after which a message that should come is given up on."""


def incoming(
    event_id: str | None,
    *,
    body: bytes = b"{}",
    event_type: str | None = "thing.happened",
    content_type: str | None = "application/json",
    headers: Mapping[str, str] | None = None,
) -> Incoming:
    """A message as a producer sends it."""
    return Incoming(
        event_id=event_id,
        event_type=event_type,
        body=body,
        content_type=content_type,
        correlation_id="correlation",
        headers=headers or {},
    )


async def take(source: Source) -> Delivery:
    """The next message. Raises TimeoutError if none comes within the bound."""
    async with asyncio.timeout(BOUND):
        return await source.receive()


async def take_patiently(source: Source) -> Delivery:
    """The same, through however many outages, as a consumer does."""
    async with asyncio.timeout(BOUND):
        while True:
            try:
                return await source.receive()
            except UnavailableError:
                await asyncio.sleep(0.02)


async def taken_ids(source: Source, number: int) -> list[str | None]:
    """The ids of the next so many, each acked."""
    ids: list[str | None] = []
    for _ in range(number):
        delivery = await take_patiently(source)
        ids.append(delivery.incoming.event_id)
        await delivery.ack()
    return ids


async def letters(harness: SourceHarness, number: int) -> list[Letter]:
    """The dead letters, once they are so many."""

    async def look() -> list[Letter] | None:
        found = await harness.dead()
        return found if len(found) >= number else None

    return await eventually(look, within=BOUND) or []
