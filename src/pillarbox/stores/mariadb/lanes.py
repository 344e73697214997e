"""Leases, lanes and epochs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b

from pillarbox.core.lane import LANES, Epochs, InFlightMessage, OwnedLane, RelayRegistration, RelaySession, Renewal
from pillarbox.stores.mariadb.connection import MariaDBStoreConnection, Steps
from pillarbox.stores.mariadb.statements import MariaDBStatements


class MariaDBLanes:
    """See `pillarbox.core.lane.Lanes`. The session of the heartbeat holds a lock, which ends with it."""

    count = LANES

    def __init__(self, connection: MariaDBStoreConnection, statements: MariaDBStatements) -> None:
        self._connection = connection
        self._sql = statements.get
        self._scope = f"{connection.address.database}.{statements.names.prefix}"
        self._held: tuple[object, str, str | None] = (None, "", None)
        """The connection that tried to hold the lock, the relay, and the session if it does."""

    async def join(self, registration: RelayRegistration, *, lease: float) -> None:
        given = {
            "id": registration.id,
            "name": registration.name,
            "host": registration.host,
            "version": registration.version,
            "lease": microseconds(lease),
        }
        await self._connection.run(self._sql("register_relay"), given)

    async def renew(
        self,
        relay: str,
        *,
        lease: float,
        in_flight: Sequence[InFlightMessage] = (),
        breakers: Mapping[str, str] = {},
        stalled: str = "",
    ) -> Renewal | None:
        given = {
            "relay": relay,
            "lease": microseconds(lease),
            "in_flight": [[held.event_id, held.destination, held.seconds] for held in in_flight],
            "breakers": json.dumps(dict(breakers)),
            "breaker_states": json.dumps([*breakers.items()]),
            "stalled": stalled,
            "session": await self._session(relay),
        }
        return await self._connection.transact(self._renewed(relay, given))

    def _renewed(self, relay: str, given: Mapping[str, object]) -> Steps[Renewal | None]:
        if not (yield self._sql("renew_lease"), given).affected:
            return None
        alive = (yield self._sql("other_breakers"), {"relay": relay}).rows
        others = tuple(json.loads(breakers) for id, breakers, _ in alive if id != relay)
        drain = any(draining for id, _, draining in alive if id == relay)
        return Renewal(relays=len(others) + 1, others=others, drain=drain)

    async def _session(self, relay: str) -> str | None:
        """The session of this heartbeat; None if another session still holds the lock: then the lease alone counts."""
        async with self._connection.open() as connection:
            held, holder, session = self._held
        if held is connection and holder == relay and session is not None:
            return session
        [(locked, name)] = await self._connection.fetch(self._sql("hold_session_lock"), {"lock": self._lock(relay)})
        session = str(name) if locked else None
        self._held = (connection, relay, session)
        return session

    async def ended(self, relay: str) -> list[RelaySession]:
        held = await self._connection.fetch(self._sql("other_sessions"), {"relay": relay})
        sessions = [RelaySession(relay=id, token=token) for id, token in held]
        return [session for session in sessions if await self._is_free(session.relay)]

    async def _is_free(self, relay: str) -> bool:
        [(free,)] = await self._connection.fetch(self._sql("is_lock_free"), {"lock": self._lock(relay)})
        return bool(free)

    async def expire(self, sessions: Sequence[RelaySession]) -> int:
        count = 0
        for session in sessions:
            given = {"relay": session.relay, "session": session.token, "lock": self._lock(session.relay)}
            count += (await self._connection.run(self._sql("end_lease"), given)).affected
        return count

    async def session_ended(self) -> None:
        await self._connection.ended()

    async def acquire(self, relay: str, *, limit: int) -> list[OwnedLane]:
        return await self._connection.transact(self._acquired(relay, limit)) if limit > 0 else []

    def _acquired(self, relay: str, limit: int) -> Steps[list[OwnedLane]]:
        if not (yield self._sql("is_alive"), {"relay": relay}).rows:
            return []
        expired = [id for (id,) in (yield self._sql("lock_expired_relays"), {"relay": relay}).rows]
        if expired:
            yield self._sql("delete_relays"), {"relays": expired}
        free = (yield self._sql("lock_free_lanes"), {"limit": limit}).rows
        owners = [owner for _, owner, _, _ in free if owner is not None]
        if owners:
            joined = {id for (id,) in (yield self._sql("find_relays"), {"relays": owners}).rows}
            free = [row for row in free if row[1] not in joined]
        if free:
            yield self._sql("acquire_lanes"), {"relay": relay, "lanes": [row[0] for row in free]}
        return [
            OwnedLane(lane=lane, epoch=epoch + 1, crashes=crashes + (owner is not None))
            for lane, owner, epoch, crashes in free
        ]

    async def release(self, relay: str, epochs: Epochs | None = None) -> None:
        steps = self._left(relay) if epochs is None else self._released(relay, epochs)
        await self._connection.transact(steps)

    async def clear_crashes(self, epochs: Epochs) -> None:
        await self._connection.transact(self._cleared(epochs))

    def _cleared(self, epochs: Epochs) -> Steps[None]:
        rows = (yield self._sql("lock_lanes"), {"lanes": [*epochs]}).rows
        if own := [lane for lane, epoch, crashes in rows if epochs[lane] == epoch and crashes]:
            yield self._sql("clear_crashes"), {"lanes": own}

    def _released(self, relay: str, epochs: Epochs) -> Steps[None]:
        rows = (yield self._sql("lock_lanes"), {"lanes": [*epochs]}).rows
        if own := [lane for lane, epoch, _ in rows if epochs[lane] == epoch]:
            yield self._sql("release_lanes"), {"lanes": own, "relay": relay}

    def _left(self, relay: str) -> Steps[None]:
        yield self._sql("release_all_lanes"), {"relay": relay}
        yield self._sql("delete_relays"), {"relays": [relay]}

    def _lock(self, relay: str) -> str:
        """The name of the lock of a relay, which is limited to 64 characters on some servers."""
        digest = blake2b(f"{self._scope} {relay}".encode(), digest_size=16).hexdigest()
        return f"pillarbox relay {digest}"


def microseconds(seconds: float) -> int:
    """An INTERVAL takes whole numbers."""
    return round(seconds * 1_000_000)
