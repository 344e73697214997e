"""Operator requests: what relays are asked to do with pending messages, with destinations and with themselves."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

from pillarbox.admin.requests import KEEP, Action, Keep, changes
from pillarbox.core.store import Forced
from pillarbox.stores.sqlite.connection import Connection
from pillarbox.stores.sqlite.statements import Statements


class SqliteRequests:
    """See `pillarbox.admin.requests.Requests`."""

    def __init__(self, connection: Connection, statements: Statements) -> None:
        self._connection = connection
        self._add = statements.get("add_requests")
        self._drain = statements.get("drain_relays")
        self._override = statements.get("override_destination")
        self._override_audit = statements.get("override_audit")
        self._drain_audit = statements.get("drain_audit")

    async def add(
        self,
        action: Action,
        events: Sequence[tuple[str, str]],
        *,
        delay: float = 0,
        by: str = "",
        act: int | None = None,
    ) -> list[int]:
        given = {"action": action, "events": json.dumps(list(events)), "delay": delay, "by": by, "act": act}

        def work(db: sqlite3.Connection) -> list[int]:
            # Fetched to the end: a statement that is still running would keep the transaction from committing.
            return [int(request_id) for (request_id,) in db.execute(self._add, given).fetchall()]

        return await self._connection.write(work)

    async def drain(self, relay: str, *, by: str = "") -> list[str]:
        def work(db: sqlite3.Connection) -> list[str]:
            asked = [one for (one,) in db.execute(self._drain, {"relay": relay, "by": by}).fetchall()]
            for one in asked:
                db.execute(self._drain_audit, {"by": by, "id": one})
            return sorted(asked)

        return await self._connection.write(work)

    async def override(
        self,
        destination: str,
        *,
        paused: bool | Keep = KEEP,
        breaker: Forced | Keep | None = KEEP,
        rate_limit: float | Keep | None = KEEP,
        by: str = "",
    ) -> None:
        changed = changes(paused=paused, breaker=breaker, rate_limit=rate_limit)
        given = {"destination": destination, "want": json.dumps(changed), "by": by}

        def work(db: sqlite3.Connection) -> None:
            db.execute(self._override, given)
            db.execute(self._override_audit, given)

        if changed:
            await self._connection.write(work)
