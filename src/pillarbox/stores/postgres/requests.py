"""Operator requests: what relays are asked to do with pending messages, with destinations and with themselves."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pillarbox.admin.requests import KEEP, Action, Keep, changes
from pillarbox.core.outcome import LONGEST_DELAY
from pillarbox.core.store import Forced
from pillarbox.stores.postgres.connection import Connection
from pillarbox.stores.postgres.statements import Statements


class PostgresRequests:
    """See `pillarbox.admin.requests.Requests`."""

    def __init__(self, connection: Connection, statements: Statements) -> None:
        self._connection = connection
        self._add = statements.get("add_requests")
        self._drain = statements.get("drain_relays")
        self._override = statements.get("override_destination")

    async def add(
        self,
        action: Action,
        events: Sequence[tuple[str, str]],
        *,
        delay: float = 0,
        by: str = "",
        act: int | None = None,
    ) -> list[int]:
        event_ids, destinations = [event_id for event_id, _ in events], [destination for _, destination in events]
        rows = await self._connection.fetch(
            self._add, action, event_ids, destinations, min(delay, LONGEST_DELAY), by, act
        )
        return [int(request_id) for (request_id,) in rows]

    async def drain(self, relay: str, *, by: str = "") -> list[str]:
        return [row[0] for row in await self._connection.fetch(self._drain, relay, by)]

    async def override(
        self,
        destination: str,
        *,
        paused: bool | Keep = KEEP,
        breaker: Forced | Keep | None = KEEP,
        rate_limit: float | Keep | None = KEEP,
        by: str = "",
    ) -> None:
        if changed := changes(paused=paused, breaker=breaker, rate_limit=rate_limit):
            await self._connection.fetch(self._override, destination, json.dumps(changed), by)
