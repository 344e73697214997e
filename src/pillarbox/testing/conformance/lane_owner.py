"""A minimal relay for tests: it owns lanes, fetches, and writes under its epochs. It decides nothing."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from pillarbox.admin.admin import AdminStore
from pillarbox.core.fetch import Bounds, Due, Fetched, NextInQueues, Parked, Ready
from pillarbox.core.lane import OwnedLane, RelayRegistration, Settled, epochs_of
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
    owned: list[OwnedLane]

    @classmethod
    async def of(cls, store: AdminStore, *, limit: int | None = None, lease: float = LONG, name: str = "") -> Owner:
        """Join, and acquire up to `limit` lanes; by default all free ones."""
        owner = cls(store, await join(store, lease=lease, name=name), [])
        await owner.acquire(store.lanes.count if limit is None else limit)
        return owner

    @property
    def epochs(self) -> dict[int, int]:
        return epochs_of(self.owned)

    @property
    def lanes(self) -> list[int]:
        return sorted(self.epochs)

    async def acquire(self, limit: int) -> list[OwnedLane]:
        taken = await self.store.lanes.acquire(self.relay, limit=limit)
        self.owned += taken
        return taken

    async def expire(self) -> None:
        """Let the lease expire, as if the relay had stopped renewing."""
        assert await self.store.lanes.renew(self.relay, lease=0) is not None

    async def taken_over(self, store: AdminStore | None = None) -> Owner:
        """Crash without leaving; return the relay that owns the lanes now. The epochs of this one are stale."""
        await self.expire()
        successor = await Owner.of(store or self.store)
        assert successor.lanes == self.lanes
        return successor

    async def ready(self, **bounds: Any) -> Fetched:
        return await self.store.messages.fetch(Ready(lanes=self.lanes, bounds=Bounds(**bounds)))

    async def due(self, **bounds: Any) -> Fetched:
        return await self.store.messages.fetch(Due(lanes=self.lanes, bounds=Bounds(**bounds)))

    async def parked(self, *destinations: str, **bounds: Any) -> Fetched:
        query = Parked(lanes=self.lanes, destinations=destinations, bounds=Bounds(**bounds))
        return await self.store.messages.fetch(query)

    async def waiting(self, *queues: KeyQueue, **bounds: Any) -> Fetched:
        return await self.store.messages.fetch(NextInQueues(queues=queues, bounds=Bounds(**bounds)))

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

    async def count_attempt(
        self,
        error: str,
        *messages: Message,
        counted: bool = False,
        counted_before_send: bool = False,
        to: str | None = None,
    ) -> Settled:
        about = resolved(messages, to)
        return await self.store.writes.count_attempt(
            self.epochs, about, error=error, counted=counted, counted_before_send=counted_before_send
        )

    async def split(self, message: Message, *destinations: str) -> Settled:
        return await self.store.writes.split(self.epochs, [Split(message, destinations)])

    async def execute_requests(self) -> int:
        return (await self.store.writes.execute_requests(self.epochs)).done


async def join(store: AdminStore, *, lease: float = LONG, name: str = "") -> str:
    """Join as a new relay without lanes; return its id."""
    relay = f"relay-{next(_numbers)}"
    await store.lanes.join(RelayRegistration(id=relay, name=name, host="here", version="0"), lease=lease)
    return relay


def resolved(messages: Sequence[Message], to: str | None = None) -> list[Resolved]:
    return [Resolved(m, m.destination if to is None else to) for m in messages]


def ids(messages: Collection[Message]) -> list[str]:
    """Return the event ids, in the order of the messages."""
    return [m.event_id for m in messages]


def queue_of(message: Message, destination: str | None = None) -> KeyQueue:
    """Return the ordering queue of this message."""
    assert message.key is not None
    return KeyQueue(message.lane, message.key, message.destination if destination is None else destination)
