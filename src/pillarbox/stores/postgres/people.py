"""What an operator sees and asks for: dead letters are inserted again, waiting messages only requested."""

from __future__ import annotations

from collections.abc import Sequence

from pillarbox.core.message import Status
from pillarbox.core.outcome import LONGEST_DELAY
from pillarbox.core.people import Action, DeadLetter, EventRow
from pillarbox.stores.postgres.connection import Connection
from pillarbox.stores.postgres.statements import Statements


class PostgresPeople:
    """See `pillarbox.core.store.People`."""

    def __init__(self, connection: Connection, statements: Statements) -> None:
        self._connection = connection
        self._find = statements.get("find")
        self._dead = statements.get("dead")
        self._retry = statements.get("retry_dead")
        self._discard = statements.get("discard_dead")
        self._ask = statements.get("ask")

    async def find(self, event_id: str) -> list[EventRow]:
        rows = await self._connection.fetch(self._find, event_id)
        return [EventRow._make(row)._replace(status=Status(row["status"])) for row in rows]

    async def dead(self, *, limit: int = 100, before: int | None = None) -> list[DeadLetter]:
        return [DeadLetter._make(row) for row in await self._connection.fetch(self._dead, limit, before)]

    async def retry(self, ids: Sequence[int], *, by: str = "") -> int:
        return int((await self._connection.fetch(self._retry, list(ids), by))[0][0])

    async def discard(self, ids: Sequence[int], *, by: str = "") -> int:
        return int((await self._connection.fetch(self._discard, list(ids), by))[0][0])

    async def ask(self, action: Action, event_id: str, destination: str, *, delay: float = 0, by: str = "") -> int:
        return int(
            (await self._connection.fetch(self._ask, action, event_id, destination, min(delay, LONGEST_DELAY), by))[0][
                0
            ]
        )
