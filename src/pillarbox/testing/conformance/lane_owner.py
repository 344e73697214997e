"""A minimal relay for tests: it owns lanes, fetches, and writes under its epochs. It decides nothing."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from pillarbox.admin.admin import AdminStore
from pillarbox.core.fetch import Bounds, Due, Fetched, NextInQueues, Parked, Ready
from pillarbox.core.lane import Lease, RelayCard, Settled, epochs_of
from pillarbox.core.message import Held, KeyQueue, Message
from pillarbox.core.outcome import Decision, Outcome, Resolved, Split

LONG = 3600.0
"""Seconds of a lease that does not end during a test."""

_numbers = count(1)


@dataclass
class Owner:
    """A relay that has joined and acquired lanes."""

    store: AdminStore
    relay: str
    leases: list[Lease]

    @classmethod
    async def of(cls, store: AdminStore, *, most: int | None = None, lease: float = LONG, name: str = "") -> Owner:
        """Join, and acquire up to `most` lanes; by default all free ones."""
        owner = cls(store, await join(store, lease=lease, name=name), [])
        await owner.take(store.lanes.count if most is None else most)
        return owner

    @property
    def epochs(self) -> dict[int, int]:
        return epochs_of(self.leases)

    @property
    def lanes(self) -> list[int]:
        return sorted(self.epochs)

    async def take(self, most: int) -> list[Lease]:
        taken = await self.store.lanes.take(self.relay, most=most)
        self.leases += taken
        return taken

    async def lapse(self) -> None:
        """Let the lease expire, as if the relay had stopped renewing."""
        assert await self.store.lanes.renew(self.relay, lease=0) is not None

    async def taken_over(self, store: AdminStore | None = None) -> Owner:
        """Crash without leaving; return the relay that owns the lanes now. The epochs of this one are stale."""
        await self.lapse()
        heir = await Owner.of(store or self.store)
        assert heir.lanes == self.lanes
        return heir

    async def ready(self, **bounds: Any) -> Fetched:
        return await self.store.messages.read(Ready(lanes=self.lanes, bounds=Bounds(**bounds)))

    async def due(self, **bounds: Any) -> Fetched:
        return await self.store.messages.read(Due(lanes=self.lanes, bounds=Bounds(**bounds)))

    async def parked(self, *destinations: str, **bounds: Any) -> Fetched:
        look = Parked(lanes=self.lanes, destinations=destinations, bounds=Bounds(**bounds))
        return await self.store.messages.read(look)

    async def waiting(self, *slots: KeyQueue, **bounds: Any) -> Fetched:
        return await self.store.messages.read(NextInQueues(queues=slots, bounds=Bounds(**bounds)))

    async def orphaned_queues(self, *, limit: int = 100) -> list[KeyQueue]:
        """Return all orphaned queues, found in chunks of `limit`."""
        found, after = await self.store.messages.orphaned_queues(self.lanes, limit=limit)
        while after is not None:
            more, after = await self.store.messages.orphaned_queues(self.lanes, limit=limit, after=after)
            found = found + more
        return found

    async def settle(
        self, outcome: Outcome, *messages: Message, to: str | None = None, seconds: float | None = None
    ) -> Settled:
        """Settle all with the same outcome; `to` is the destination they were resolved to (default: their own)."""
        decisions = [Decision(m, outcome, m.destination if to is None else to, seconds) for m in messages]
        return await self.store.writes.settle(self.epochs, decisions)

    async def hold(self, held: Held, *messages: Message, to: str | None = None) -> Settled:
        return await self.store.writes.hold(self.epochs, resolved(messages, to), held)

    async def note(
        self, error: str, *messages: Message, counted: bool = False, noted: bool = False, to: str | None = None
    ) -> Settled:
        about = resolved(messages, to)
        return await self.store.writes.note(self.epochs, about, error=error, counted=counted, noted=noted)

    async def split(self, message: Message, *destinations: str) -> Settled:
        return await self.store.writes.split(self.epochs, [Split(message, destinations)])

    async def carry_out(self) -> int:
        return (await self.store.writes.carry_out(self.epochs)).done


async def join(store: AdminStore, *, lease: float = LONG, name: str = "") -> str:
    """Join as a new relay without lanes; return its id."""
    relay = f"relay-{next(_numbers)}"
    await store.lanes.join(RelayCard(id=relay, name=name, host="here", version="0"), lease=lease)
    return relay


def resolved(messages: Sequence[Message], to: str | None = None) -> list[Resolved]:
    return [Resolved(m, m.destination if to is None else to) for m in messages]


def ids(messages: Collection[Message]) -> list[str]:
    """Return the event ids, in the order of the messages."""
    return [m.event_id for m in messages]


def slot(message: Message, destination: str | None = None) -> KeyQueue:
    """Return the ordering queue of this message."""
    assert message.key is not None
    return KeyQueue(message.lane, message.key, message.destination if destination is None else destination)
