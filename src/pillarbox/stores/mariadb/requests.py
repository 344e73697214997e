"""Executes operator requests for pending messages: a constant number of statements per batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

from pillarbox.core.errors import RowsRefusedError
from pillarbox.core.lane import Epochs
from pillarbox.core.outcome import RequestResults, sanitize_error
from pillarbox.stores.mariadb.connection import MariaDBStoreConnection, Steps
from pillarbox.stores.mariadb.lanes import microseconds
from pillarbox.stores.mariadb.statements import MariaDBStatements


class OpenRequestRow(NamedTuple):
    """An open request, as `open_requests` reads it."""

    request_id: int
    action: str
    event_id: str
    destination: str
    delay: float
    bulk_action_id: int | None
    id: int | None
    """The sequence of the message; None if it is not pending."""

    @property
    def position(self) -> tuple[int | None, str]:
        return self.id, self.destination


class MariaDBRequests:
    """Executes requests under the epochs of lanes."""

    def __init__(self, connection: MariaDBStoreConnection, statements: MariaDBStatements) -> None:
        self._connection = connection
        self._sql = statements.get

    async def execute(self, epochs: Epochs, *, limit: int, in_flight: Collection[tuple[int, str]]) -> RequestResults:
        try:
            return await self._connection.transact(self._executed(epochs, limit, in_flight))
        except RowsRefusedError as error:
            if limit > 1:
                # The others come with the next calls, once the one that is refused is closed.
                return await self.execute(epochs, limit=limit // 10 or 1, in_flight=in_flight)
            told = sanitize_error(str(error))
            return await self._connection.transact(self._executed(epochs, 1, in_flight, refused=told))

    def _executed(
        self, epochs: Epochs, limit: int, in_flight: Collection[tuple[int, str]], refused: str = ""
    ) -> Steps[RequestResults]:
        rows = (yield self._sql("lock_lanes"), {"lanes": [*epochs]}).rows
        own = [lane for lane, epoch, _ in rows if epochs[lane] == epoch]
        # As many more as may be in flight: those stay open and must not delay the others.
        given = {"lanes": own, "limit": limit + len(in_flight)}
        asked = [OpenRequestRow(*row) for row in (yield self._sql("open_requests"), given).rows]
        deferred = [request for request in asked if request.position in in_flight]
        first: dict[tuple[str, str], OpenRequestRow] = {}
        for request in [request for request in asked if request.position not in in_flight][:limit]:
            # Of several requests for one message the others wait for the next call.
            first.setdefault((request.event_id, request.destination), request)
        mine = list(first.values())
        if refused and mine:
            yield self._sql("request_reject"), {"request": mine[0].request_id, "error": refused}
        elif mine:
            yield from self._done(mine)
        return RequestResults(
            len(mine), [(request.id, request.destination) for request in deferred if request.id is not None]
        )

    def _done(self, requests: list[OpenRequestRow]) -> Steps[None]:
        done = [request for request in requests if request.id is not None]
        again = [
            [request.id, request.destination, microseconds(request.delay), request.action]
            for request in done
            if request.action in ("retry", "reschedule")
        ]
        if again:
            yield self._sql("request_retry"), {"requests": again}
        for actions in (("dead_letter",), ("discard", "dead_letter")):
            chosen = [[request.id or 0, request.destination] for request in done if request.action in actions]
            statement = "request_dead_letter" if actions == ("dead_letter",) else "remove_positions"
            if chosen:
                yield self._sql(statement), {"positions": chosen}
        ids = [request.request_id for request in done]
        yield self._sql("request_close"), {"requests": [request.request_id for request in requests], "done": ids}
        if single := [request.request_id for request in done if request.bulk_action_id is None]:
            yield self._sql("request_audit"), {"requests": single}
        bulk = Counter(request.bulk_action_id for request in done if request.bulk_action_id is not None)
        if bulk:
            yield self._sql("request_bulk_progress"), {"bulk_actions": [[*entry] for entry in sorted(bulk.items())]}
