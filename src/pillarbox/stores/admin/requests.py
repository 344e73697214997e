"""Operator requests: what relays are asked to do with pending messages, with destinations and with themselves."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pillarbox.admin.requests import KEEP, Action, Keep, changes
from pillarbox.core.outcome import MAX_DELAY
from pillarbox.core.store import ForcedBreakerState
from pillarbox.stores.admin.engine import Engine, StatementSteps


class SqlRequests:
    """See `pillarbox.admin.requests.Requests`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._add = engine.statement("add_requests")
        self._find = engine.statement("find_relays_to_drain")
        self._drain = engine.statement("drain_relays")
        self._audit_each = engine.statement("audit_subjects")
        self._audit = engine.statement("add_audit_entry")
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
            "delay": float(min(delay, MAX_DELAY)),
            "by": by,
            "bulk_action": bulk_action,
        }
        return [int(request_id) for (request_id,) in await self._engine.write(self._add, given)]

    async def drain(self, relay: str, *, by: str = "") -> list[str]:
        return sorted(await self._engine.transact(self._drained(relay, by=by)))

    def _drained(self, relay: str, *, by: str) -> StatementSteps[list[str]]:
        asked = [id for (id,) in (yield self._find, {"relay": relay})]
        yield self._drain, {"relays": asked, "by": by}
        yield self._audit_each, {"by": by, "what": "drain", "subjects": asked}
        return asked

    async def override(
        self,
        destination: str,
        *,
        paused: bool | Keep = KEEP,
        breaker: ForcedBreakerState | Keep | None = KEEP,
        rate_limit: float | Keep | None = KEEP,
        by: str = "",
    ) -> None:
        if changed := changes(paused=paused, breaker=breaker, rate_limit=rate_limit):
            await self._engine.transact(self._overridden(destination, changed, by=by))

    def _overridden(self, destination: str, changed: Mapping[str, object], *, by: str) -> StatementSteps[None]:
        entry = {"by": by, "what": "override", "subject": destination, "count": 1, "detail": json.dumps(changed)}
        yield self._audit, entry
        sets = {f"sets_{part}": part in changed for part in ("paused", "breaker", "rate_limit")}
        state = {"paused": False, "breaker": None, "rate_limit": None, **changed}
        yield self._override, {"destination": destination, "by": by, **state, **sets}
