"""Operator requests: what relays are asked to do with pending messages, with destinations and with themselves."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pillarbox.admin.requests import KEEP, Action, Keep, changes
from pillarbox.core.outcome import LONGEST_DELAY
from pillarbox.core.store import Forced
from pillarbox.stores.admin.engine import Engine


class SqlRequests:
    """See `pillarbox.admin.requests.Requests`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._add = engine.statement("add_requests")
        self._drain = engine.statement("drain_relays")
        self._override = engine.statement("override_destination")

    async def add(
        self,
        action: Action,
        events: Sequence[tuple[str, str]],
        *,
        delay: float = 0,
        by: str = "",
        bulk_action: int | None = None,
    ) -> list[int]:
        given = {
            "action": action,
            "event_ids": [event_id for event_id, _ in events],
            "destinations": [destination for _, destination in events],
            "delay": float(min(delay, LONGEST_DELAY)),
            "by": by,
            "bulk_action": bulk_action,
        }
        return [int(request_id) for (request_id,) in await self._engine.write(self._add, given)]

    async def drain(self, relay: str, *, by: str = "") -> list[str]:
        return sorted(asked for (asked,) in await self._engine.write(self._drain, {"relay": relay, "by": by}))

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
            await self._engine.write(
                self._override, {"destination": destination, "wanted": json.dumps(changed), "by": by}
            )
