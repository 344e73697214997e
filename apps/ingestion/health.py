"""UP or DOWN, with the backlog and the state of the relay."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Literal

from apps.ingestion.settings import RelayMode
from apps.runtime.stores import Store
from pillarbox import PillarboxError

State = Literal["UP", "DOWN"]
DATABASE_TIMEOUT = 3.0
"""Seconds within which the database must respond."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The result of `GET /health`."""

    status: State
    database: State
    relay: str
    backlog: int | None = None
    """Events that are not published yet."""
    oldest_seconds: float | None = None
    """How long the oldest of them has waited."""
    dead: int | None = None
    reason: str | None = None


async def check(store: Store, *, relay: RelayMode, max_backlog: int) -> Health:
    """DOWN if the database does not respond, the backlog is too large, or no relay runs although one should."""
    try:
        async with asyncio.timeout(DATABASE_TIMEOUT):
            seen = await store.admin.inspection.overview()
    except (PillarboxError, TimeoutError):
        return Health(status="DOWN", database="DOWN", relay=relay, reason="the database does not respond")
    alive = any(one.lease > 0 for one in seen.relays)
    reasons = []
    if relay != "off" and not alive:
        reasons.append("no relay is running")
    if seen.backlog > max_backlog:
        reasons.append(f"more than {max_backlog} events are pending")
    return Health(
        status="DOWN" if reasons else "UP",
        database="UP",
        relay=f"{relay}, {'running' if alive else 'not running'}",
        backlog=seen.backlog,
        oldest_seconds=seen.oldest,
        dead=seen.dead,
        reason="; ".join(reasons) or None,
    )
