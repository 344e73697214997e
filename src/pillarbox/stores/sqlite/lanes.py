"""The lane, its owner, and the leases of the relays."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Mapping, Sequence

from pillarbox.core.lane import Epochs, InFlightMessage, OwnedLane, RelayRegistration, RelaySession, Renewal
from pillarbox.stores.sqlite.connection import SqliteStoreConnection
from pillarbox.stores.sqlite.sessions import RelayLocks
from pillarbox.stores.sqlite.statements import SqliteStatements

LANE = 0
"""SQLite has one writer at a time, so a second lane would only wait for the first."""


class SqliteLanes:
    """See `pillarbox.core.lane.Lanes`."""

    count = 1

    def __init__(self, connection: SqliteStoreConnection, statements: SqliteStatements, locks: RelayLocks) -> None:
        self._connection = connection
        self._locks = locks
        self._join = statements.get("register_relay")
        self._renew = statements.get("renew_lease")
        self._others = statements.get("other_breakers")
        self._sessions = statements.get("other_sessions")
        self._end_lease = statements.get("end_lease")
        self._alive = statements.get("is_alive")
        self._expire = statements.get("delete_expired_relays")
        self._acquire = statements.get("acquire_lanes")
        self._release = statements.get("release_lanes")
        self._let_go = statements.get("release_all_lanes")
        self._leave = statements.get("leave")
        self._epoch = statements.get("lane_epoch")
        self._clear_crashes = statements.get("clear_crashes")
        self._asked_to_drain = statements.get("drain_requested")

    async def join(self, registration: RelayRegistration, *, lease: float) -> None:
        given = {
            "id": registration.id,
            "name": registration.name,
            "host": registration.host,
            "version": registration.version,
            "lease": lease,
        }
        await self._connection.write(lambda db: db.execute(self._join, given).close())

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
            "lease": lease,
            "in_flight": json.dumps([[held.event_id, held.destination, held.seconds] for held in in_flight]),
            "breakers": json.dumps(dict(breakers)),
            "stalled": stalled,
        }

        def work(db: sqlite3.Connection) -> Renewal | None:
            if not db.execute(self._renew, given | {"session": self._locks.hold(relay)}).rowcount:
                return None
            others = tuple(json.loads(other) for (other,) in db.execute(self._others, {"relay": relay}))
            [(drain,)] = db.execute(self._asked_to_drain, {"relay": relay}).fetchall()
            return Renewal(relays=len(others) + 1, others=others, drain=bool(drain))

        return await self._connection.write(work)

    async def ended(self, relay: str) -> list[RelaySession]:
        def work(db: sqlite3.Connection) -> list[RelaySession]:
            held = [RelaySession(relay=id, token=token) for id, token in db.execute(self._sessions, {"relay": relay})]
            return [session for session in held if self._locks.ended(session.relay)]

        return await self._connection.read(work)

    async def expire(self, sessions: Sequence[RelaySession]) -> int:
        def work(db: sqlite3.Connection) -> int:
            gone = [session for session in sessions if self._locks.ended(session.relay)]
            return sum(
                db.execute(self._end_lease, {"relay": session.relay, "session": session.token}).rowcount
                for session in gone
            )

        return await self._connection.write(work)

    async def session_ended(self) -> None:
        """Never: a lock is held until the process ends."""
        await asyncio.Event().wait()

    async def acquire(self, relay: str, *, limit: int) -> list[OwnedLane]:
        def work(db: sqlite3.Connection) -> list[OwnedLane]:
            (alive,) = db.execute(self._alive, {"relay": relay}).fetchone()
            if limit < 1 or not alive:
                return []
            for (dead,) in db.execute(self._expire, {"relay": relay}).fetchall():
                self._locks.remove(dead)
            taken = db.execute(self._acquire, {"relay": relay}).fetchall()
            return [OwnedLane(lane=lane, epoch=epoch, crashes=crashes) for lane, epoch, crashes in taken]

        return await self._connection.write(work)

    async def release(self, relay: str, epochs: Epochs | None = None) -> None:
        if epochs is None:
            await self._leave_all(relay)
            return
        given = {"relay": relay, "epoch": epochs.get(LANE)}
        await self._connection.write(lambda db: db.execute(self._release, given).close())

    async def clear_crashes(self, epochs: Epochs) -> None:
        def work(db: sqlite3.Connection) -> None:
            (epoch,) = db.execute(self._epoch).fetchone()
            if epoch == epochs.get(LANE):
                db.execute(self._clear_crashes)

        await self._connection.write(work)

    async def _leave_all(self, relay: str) -> None:
        def work(db: sqlite3.Connection) -> None:
            db.execute(self._let_go, {"relay": relay})
            db.execute(self._leave, {"relay": relay})

        await self._connection.write(work)
