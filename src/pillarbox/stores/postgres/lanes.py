"""Leases, lanes and epochs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pillarbox.core.lane import LANES, Epochs, InFlightMessage, OwnedLane, RelayRegistration, RelaySession, Renewal
from pillarbox.stores.postgres.arrays import literal
from pillarbox.stores.postgres.connection import PostgresStoreConnection
from pillarbox.stores.postgres.statements import PostgresStatements


class PostgresLanes:
    """See `pillarbox.core.lane.Lanes`."""

    count = LANES

    def __init__(self, connection: PostgresStoreConnection, statements: PostgresStatements) -> None:
        self._connection = connection
        self._join = statements.get("register_relay")
        self._renew = statements.get("renew_lease")
        self._ended = statements.get("find_ended_sessions")
        self._expire = statements.get("end_leases")
        self._acquire = statements.get("acquire_lanes")
        self._release = statements.get("release_lanes")
        self._clear_crashes = statements.get("clear_crashes")
        self._leave = statements.get("leave")

    async def join(self, registration: RelayRegistration, *, lease: float) -> None:
        await self._connection.fetch(
            self._join, registration.id, registration.name, registration.host, registration.version, lease
        )

    async def renew(
        self,
        relay: str,
        *,
        lease: float,
        in_flight: Sequence[InFlightMessage] = (),
        breakers: Mapping[str, str] = {},
        stalled: str = "",
    ) -> Renewal | None:
        found = await self._connection.fetch_in_session(
            self._renew,
            relay,
            lease,
            literal(held.event_id for held in in_flight),
            literal(held.destination for held in in_flight),
            literal(held.seconds for held in in_flight),
            json.dumps(dict(breakers)),
            stalled,
        )
        if not found:
            return None
        others = tuple(json.loads(other) for other in found[0]["others"])
        return Renewal(relays=len(others) + 1, others=others, drain=found[0]["drain"])

    async def ended(self, relay: str) -> list[RelaySession]:
        return [RelaySession(relay=id, token=token) for id, token in await self._connection.fetch(self._ended, relay)]

    async def expire(self, sessions: Sequence[RelaySession]) -> int:
        relays, tokens = [one.relay for one in sessions], [one.token for one in sessions]
        return len(await self._connection.fetch(self._expire, relays, tokens))

    async def session_ended(self) -> None:
        await self._connection.ended()

    async def acquire(self, relay: str, *, limit: int) -> list[OwnedLane]:
        taken = await self._connection.fetch(self._acquire, relay, limit)
        return sorted((OwnedLane(lane=r[0], epoch=r[1], crashes=r[2]) for r in taken), key=lambda owned: owned.lane)

    async def clear_crashes(self, epochs: Epochs) -> None:
        await self._connection.fetch(self._clear_crashes, literal(epochs), literal(epochs.values()))

    async def release(self, relay: str, epochs: Epochs | None = None) -> None:
        if epochs is None:
            await self._connection.fetch(self._leave, relay)
        else:
            await self._connection.fetch(self._release, relay, literal(epochs), literal(epochs.values()))
