"""Messages for the tests, and functions that send them with a timeout and read what arrived."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime

from pillarbox.core.errors import UnavailableError
from pillarbox.core.event import BYTES
from pillarbox.core.message import Message
from pillarbox.core.transport import Address, Outgoing, SendResult
from pillarbox.testing.conformance.transports.harness import Arrived, TransportHarness
from pillarbox.testing.waiting import eventually

BOUND = 90.0
"""Seconds within which a send must have its results."""

_WHEN = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


def outgoing(
    event_id: str,
    address: Address,
    *,
    body: bytes | None = None,
    content_type: str = BYTES,
    headers: Mapping[str, str] | None = None,
    event_type: str = "thing.happened",
    attempt: int = 1,
    epoch: int = 0,
) -> Outgoing:
    """Return a message as the relay passes it; its body is its id by default."""
    body = event_id.encode() if body is None else body
    message = Message(
        id=1,
        lane=0,
        event_id=event_id,
        destination="somewhere",
        event_type=event_type,
        aggregate_type="THING",
        aggregate_id="1",
        key="THING:1",
        payload=body,
        content_type=content_type,
        headers_json="{}",
        schema_version=1,
        correlation_id="correlation",
        causation_id="causation",
        trace_id=None,
        occurred_at=_WHEN,
        recorded_at=_WHEN,
        available_at=None,
        held=None,
        attempts=attempt - 1,
        deferrals=0,
        must_wait=False,
    )
    return Outgoing(message, address, body, content_type, headers or {}, attempt, epoch)


async def send(harness: TransportHarness, *batch: Outgoing) -> list[SendResult]:
    """Send one batch. Raises TimeoutError."""
    async with asyncio.timeout(BOUND):
        return await harness.transport.send(batch)


async def try_to_send(harness: TransportHarness, *batch: Outgoing) -> list[SendResult]:
    """Send one batch on a transport that may be closed: a raised UnavailableError is the result of each message."""
    try:
        return await send(harness, *batch)
    except UnavailableError as error:
        return [error] * len(batch)


async def arrived(harness: TransportHarness, address: Address, number: int) -> list[Arrived]:
    """Return what arrived at an address once there are at least that many; all were accepted before."""

    async def all_arrived() -> list[Arrived] | None:
        found = await harness.received(address)
        return found if len(found) >= number else None

    return await eventually(all_arrived, within=BOUND) or []


async def arrived_ids(harness: TransportHarness, address: Address, number: int) -> list[str]:
    """Return the event ids, in the order of arrival."""
    return [one.event_id for one in await arrived(harness, address, number)]
