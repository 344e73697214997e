"""Executes the faults of a drill, one after another, and records which of them took effect.

A kill counts only if messages were in flight; a freeze only if others took the lanes of the frozen relay; an outage
only if the drill's own connection or a relay noticed it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.listing import EventFilter, Position
from pillarbox.admin.overview import Overview
from pillarbox.core.errors import CommandError, StoreUnavailableError, UnavailableError
from pillarbox.core.store import EVERYWHERE
from pillarbox.ops.drill.blocked_settlement import BlockedSettlement
from pillarbox.ops.drill.database import DrillTables
from pillarbox.ops.drill.fleet import STOP_TIMEOUT, Fleet, Member
from pillarbox.ops.drill.hooks import OutageHooks
from pillarbox.ops.drill.interruptions import read_interruptions
from pillarbox.ops.drill.recovery import FOLLOWING
from pillarbox.ops.drill.schedule import ExecutedFault, FaultKind, PlannedFault
from pillarbox.ops.drill.target import LEASE
from pillarbox.plugins import DrillQueue

POLL = 0.02
POINT_TIMEOUT = 10.0
"""Seconds within which a relay reaches a point with messages in flight; after that it is killed wherever it is."""
STORE_TIMEOUT = 120.0
"""Seconds without an answer of the store after which a drill ends: the command that restores it may have failed."""
SETTLE_TIMEOUT = 60.0
"""Seconds within which a drill expects the relays to react; generous, for a busy machine."""
TAKEOVER = LEASE + 0.4
"""Seconds in which the lanes of a killed relay are taken over; less than a settlement waits for a lock (5 s)."""
PAGE = 1000


@dataclass(slots=True, kw_only=True)
class Nemesis:
    """Executes faults."""

    fleet: Fleet
    store: AdminStore
    tables: DrillTables
    queue: DrillQueue | None
    database_hooks: OutageHooks
    broker_hooks: OutageHooks
    spared: int = 0
    """So many of the first relays are never a victim."""
    stale: list[str] = field(default_factory=list[str])
    """Events that were removed while every send was paused and another relay owned their lanes."""
    _recovers_from: float = 0.0

    def kinds(self) -> tuple[FaultKind, ...]:
        """The faults that this target supports."""
        found: list[FaultKind] = ["kill", "freeze", "stale-settlement", "drain"]
        if self.tables.dialect == "postgres":
            found.append("blocked-settlement")
        if self.queue is not None:
            found.append("kill-consumer")
            if self.queue.detachable:
                found.append("unroutable")
        if self.database_hooks.given:
            found.append("cut-database")
        if self.broker_hooks.given:
            found.append("cut-broker")
        return tuple(found)

    async def execute(self, planned: PlannedFault) -> ExecutedFault:
        """Execute a fault and return what happened. Raises CommandError if a process or a hook fails."""
        actions: dict[FaultKind, Callable[[PlannedFault, ExecutedFault], Coroutine[Any, Any, None]]] = {
            "kill": self._kill,
            "freeze": self._freeze,
            "stale-settlement": self._stale_settlement,
            "blocked-settlement": self._blocked_settlement,
            "drain": self._drain,
            "kill-consumer": self._kill_consumer,
            "unroutable": self._unroutable,
            "cut-database": self._cut_database,
            "cut-broker": self._cut_broker,
        }
        done = ExecutedFault(kind=planned.kind, began=time.monotonic())
        await actions[planned.kind](planned, done)
        done.ended = time.monotonic()
        done.recovers_from = done.recovers_from or done.ended
        self._recovers_from = done.ended
        return done

    async def recovered(self) -> bool:
        """Whether lanes have owners, and what was committed by the last fault, or just after, is settled.

        Without this wait, an event in three crashes would be dead-lettered, and the recovery from one fault would
        include the next one.
        """
        overview, since = await self.overview(), time.monotonic() - self._recovers_from - FOLLOWING
        running = {one.id for one in overview.relays if one.name in {member.name for member in self.fleet.relays}}
        return (
            since > 0
            and all(lane.owner in running for lane in overview.lanes)
            and (overview.oldest is None or overview.oldest < since)
        )

    async def overview(self) -> Overview:
        """The state of the outbox, as soon as the store answers. Raises CommandError if it does not in time."""
        until = time.monotonic() + STORE_TIMEOUT
        while True:
            try:
                return await self.store.admin.inspection.overview()
            except StoreUnavailableError as error:
                if time.monotonic() > until:
                    raise CommandError(f"the store has not answered for {STORE_TIMEOUT:g} s: {error}") from error
                await asyncio.sleep(0.2)

    # -- relays ---------------------------------------------------------------------------------------------------

    async def _kill(self, planned: PlannedFault, done: ExecutedFault) -> None:
        member = await self._stopped(planned, done, planned.point)
        self._kill_member(member, done)
        done.took_effect = done.in_flight > 0
        self.fleet.start_relay()

    async def _freeze(self, planned: PlannedFault, done: ExecutedFault) -> None:
        member = await self._frozen(planned, done, planned.point or "before-settle")
        done.recovers_from = time.monotonic()
        lost = member.process.frozen and await self._lanes_lost(member)
        done.took_effect = lost and done.in_flight > 0
        member.process.thaw()

    async def _stale_settlement(self, planned: PlannedFault, done: ExecutedFault) -> None:
        """Nothing but the settlement of the frozen relay could remove a pending event while every send is paused."""
        member = await self._frozen(planned, done, "before-settle")
        if not member.process.frozen:
            return
        async with self._paused():
            lost = await self._lanes_lost(member)
            before = await self._pending_at_rest()
            member.process.thaw()
            joined = await self._until(lambda overview: any(one.name == member.name for one in overview.relays))
            after = await self._pending_at_rest()
            self.stale += sorted(before - after)
            done.took_effect = lost and joined and done.in_flight > 0 and bool(before)

    async def _blocked_settlement(self, planned: PlannedFault, done: ExecutedFault) -> None:
        member = await self._stopped(planned, done, "before-settle")
        if not member.process.frozen:
            return
        async with self._paused(), BlockedSettlement(self.tables, member.name) as blocked:
            member.process.thaw()
            waiting = await blocked.wait()
            owned = self._ids(member, await self.overview())
            self._kill_member(member, done)
            done.took_effect = waiting
            taken = waiting and await self._until(lambda overview: not _owners(overview) & owned, within=TAKEOVER)
            before = await self._pending() if taken else set[str]()
            await blocked.release()
            after = await self._pending_at_rest() if taken else set[str]()
            self.stale += sorted(before - after)
        done.recovers_from = time.monotonic()
        self.fleet.start_relay()

    async def _drain(self, planned: PlannedFault, done: ExecutedFault) -> None:
        """Exit code 0 is required, and nothing may be sent again."""
        member = await self._owner(planned.victim)
        done.victim, done.in_flight = member.name, member.control.in_flight
        self.fleet.start_relay()
        await member.process.stop(within=STOP_TIMEOUT)
        self.fleet.forget(member)
        done.took_effect = True

    async def _frozen(self, planned: PlannedFault, done: ExecutedFault, point: str) -> Member:
        """As `_stopped`, and without a lock on the SQLite file: a handler in another thread of the relay may hold it,
        and then no other relay could take over. Such a relay continues to the point again."""
        until = time.monotonic() + POINT_TIMEOUT
        while True:
            member = await self._stopped(planned, done, point)
            if not member.process.frozen or not await self.tables.is_locked():
                return member
            member.process.thaw()
            if time.monotonic() > until:
                return member

    async def _stopped(self, planned: PlannedFault, done: ExecutedFault, point: str) -> Member:
        """Let a relay that owns lanes freeze itself at a point with messages in flight; it may not get there in time.

        It is never frozen elsewhere, because it would keep locks of a statement. Without a point, wait until messages
        are in flight.
        """
        member = await self._owner(planned.victim)
        if point:
            member.control.freeze_at(point, planned.hits)
        until = time.monotonic() + POINT_TIMEOUT
        while time.monotonic() < until:
            member.process.check()
            if member.process.frozen if point else member.control.in_flight:
                break
            await asyncio.sleep(POLL)
        member.control.withdraw()
        done.point = point if member.process.frozen else ""
        done.victim, done.in_flight = member.name, member.control.in_flight
        return member

    async def _owner(self, number: int) -> Member:
        """One of the relays that own lanes, and join or have joined."""
        found: list[Member] = []

        def some(overview: Overview) -> bool:
            owners = _owners(overview)
            names = {one.name for one in overview.relays if one.id in owners}
            found[:] = [member for member in self.fleet.relays[self.spared :] if member.name in names]
            return bool(found)

        if not await self._until(some):
            raise CommandError(f"no relay has acquired a lane within {SETTLE_TIMEOUT:g} s; read the logs with --keep")
        return found[number % len(found)]

    def _kill_member(self, member: Member, done: ExecutedFault) -> None:
        member.process.kill()
        done.recovers_from = time.monotonic()
        done.in_flight = max(done.in_flight, member.control.in_flight)  # until it was killed, it may have sent more
        self.fleet.forget(member)

    async def _lanes_lost(self, member: Member) -> bool:
        """Wait until others own the lanes of a relay and its lease is gone."""
        owned = self._ids(member, await self.overview())
        return await self._until(
            lambda overview: (
                not _owners(overview) & owned and not {one.id for one in overview.relays if one.lease > 0} & owned
            )
        )

    def _ids(self, member: Member, overview: Overview) -> set[str]:
        return {one.id for one in overview.relays if one.name == member.name}

    # -- consumers, broker and database ---------------------------------------------------------------------------

    async def _kill_consumer(self, planned: PlannedFault, done: ExecutedFault) -> None:
        member = self.fleet.workers[planned.victim % len(self.fleet.workers)]
        until = time.monotonic() + POINT_TIMEOUT
        while time.monotonic() < until:
            member.process.freeze()
            if member.control.in_flight > 0:
                break
            member.process.thaw()
            await asyncio.sleep(POLL)
        done.victim, done.in_flight = member.name, member.control.in_flight
        member.process.kill()
        self.fleet.forget(member)
        done.took_effect = done.in_flight > 0
        self.fleet.start_reader("work")

    async def _unroutable(self, planned: PlannedFault, done: ExecutedFault) -> None:
        if self.queue is None:
            raise CommandError("there is no broker")
        await self.queue.detach()
        try:
            await asyncio.sleep(planned.seconds)
            overview = await self.overview()
            done.took_effect = overview.oldest is not None and overview.oldest > planned.seconds / 2
        finally:
            await self.queue.attach()

    async def _cut_database(self, planned: PlannedFault, done: ExecutedFault) -> None:
        async def noticed() -> bool:
            try:
                await asyncio.wait_for(self.store.admin.inspection.relays(), planned.seconds)
            except (StoreUnavailableError, TimeoutError):
                return True
            return False

        await self._cut(self.database_hooks, planned, done, noticed)

    async def _cut_broker(self, planned: PlannedFault, done: ExecutedFault) -> None:
        async def noticed() -> bool:
            if self.queue is None:
                return False
            try:
                await asyncio.wait_for(self.queue.transport.ping(), planned.seconds)
            except (UnavailableError, TimeoutError):
                return True
            return False

        await self._cut(self.broker_hooks, planned, done, noticed)

    async def _cut(
        self,
        hooks: OutageHooks,
        planned: PlannedFault,
        done: ExecutedFault,
        noticed: Callable[[], Coroutine[Any, Any, bool]],
    ) -> None:
        async with hooks.outage():
            until = time.monotonic() + planned.seconds
            done.took_effect = await noticed()
            await asyncio.sleep(max(0.0, until - time.monotonic()))
        # On a cluster, the drill may be connected to a node that still runs.
        done.took_effect |= any(one.at >= done.began for one in read_interruptions(self.fleet.folder))

    # -- the state of the outbox ----------------------------------------------------------------------------------

    @asynccontextmanager
    async def _paused(self) -> AsyncIterator[None]:
        """No writer writes and no relay sends while the block is open."""
        self.fleet.hold_writers()
        await self.store.admin.requests.override(EVERYWHERE, paused=True, by="drill")
        try:
            yield
        finally:
            await self.store.admin.requests.override(EVERYWHERE, paused=False, by="drill")
            self.fleet.resume_writers()

    async def _pending_at_rest(self) -> set[str]:
        """Return the ids of pending events, once they are the same for longer than a heartbeat."""
        before, until = await self._pending(), time.monotonic() + SETTLE_TIMEOUT
        while True:
            await asyncio.sleep(0.75)
            found = await self._pending()
            if found == before or time.monotonic() > until:
                return found
            before = found

    async def _pending(self) -> set[str]:
        found: set[str] = set()
        after: Position | None = None
        while True:
            page = await self.store.admin.events.list(EventFilter(undelivered=True), limit=PAGE, after=after)
            found.update(event.event_id for event in page.events)
            if (after := page.after) is None:
                return found

    async def _until(self, condition: Callable[[Overview], bool], *, within: float = SETTLE_TIMEOUT) -> bool:
        until = time.monotonic() + within
        while not condition(await self.overview()):
            self.fleet.check()
            if time.monotonic() > until:
                return False
            await asyncio.sleep(POLL)
        return True


def _owners(overview: Overview) -> set[str]:
    return {lane.owner for lane in overview.lanes if lane.owner is not None}
