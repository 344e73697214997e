"""UP or DOWN, and the figures behind it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Literal

from apps.ingestion.settings import RelayWay
from pillarbox import PillarboxError
from pillarbox.stores.postgres import PostgresStore
from pillarbox.stores.sqlite import SqliteStore

State = Literal["UP", "DOWN"]
PATIENCE = 3.0
"""Seconds a database may take to answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What `GET /health` tells."""

    status: State
    database: State
    relay: str
    backlog: int | None = None
    """Events that are not published yet."""
    oldest_seconds: float | None = None
    """How long the oldest of them has waited."""
    dead: int | None = None
    reason: str | None = None


async def look(store: PostgresStore | SqliteStore, *, relay: RelayWay, most_backlog: int) -> Health:
    """DOWN without a database, with too large a backlog, or where a relay should be at work and none is."""
    try:
        async with asyncio.timeout(PATIENCE):
            seen = await store.admin.inspection.overview()
    except (PillarboxError, TimeoutError):
        return Health(status="DOWN", database="DOWN", relay=relay, reason="the database does not answer")
    alive = any(one.lease > 0 for one in seen.relays)
    reasons = []
    if relay != "off" and not alive:
        reasons.append("no relay is at work")
    if seen.backlog > most_backlog:
        reasons.append(f"more than {most_backlog} events wait")
    return Health(
        status="DOWN" if reasons else "UP",
        database="UP",
        relay=f"{relay}, {'at work' if alive else 'not at work'}",
        backlog=seen.backlog,
        oldest_seconds=seen.oldest,
        dead=seen.dead,
        reason="; ".join(reasons) or None,
    )
