"""Producers with transactions that overlap, a relay and an operator, step by step in a random order.

After every step a store that fetches from low-water marks finds what a store without marks finds.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from random import Random

import asyncpg

from pillarbox.admin.requests import Action
from pillarbox.core.fetch import Bounds, Due, Parked, Ready
from pillarbox.core.lane import Epochs, RelayRegistration, epochs_of
from pillarbox.core.message import Held, Message
from pillarbox.core.outcome import DELIVERED, Dead, Decision, Outcome, Resolved, Retry, Split
from pillarbox.stores.postgres import PostgresStore
from tests.databases import Sql

RECORD = "INSERT INTO outbox_message (event_id, event_type, payload, ordering_key) VALUES ($1, 'moved', '', $2)"
LANES = list(range(64))
PRODUCERS = 5
ACTIONS: tuple[Action, ...] = ("retry", "reschedule", "discard", "dead_letter")
KEYS = 6
OUTCOMES: list[Outcome] = [DELIVERED, DELIVERED, Retry(delay=0, error="no"), Dead(error="no")]
OUTCOMES.append(Dead(error="no", block=True))


class EventHiddenError(AssertionError):
    """A fetch from low-water marks did not find what a fetch without marks found."""


@dataclass
class Producer:
    """A connection and the savepoints of its open transaction."""

    sql: Sql
    savepoints: list[str] = field(default_factory=list[str])
    is_open: bool = False


@dataclass
class Walk:
    """See the module. `with_marks` searches for marks only when told to."""

    random: Random
    with_marks: PostgresStore
    without: PostgresStore
    sql: Sql
    producers: list[Producer]
    epochs: Epochs
    in_flight: list[Message] = field(default_factory=list[Message])
    prepared: list[str] = field(default_factory=list[str])
    numbers: count[int] = field(default_factory=count)

    async def compare(self) -> list[Message]:
        bounds = Bounds(limit=10_000, quota=10_000, in_flight=[message.position for message in self.in_flight])
        query = Ready(lanes=LANES, bounds=bounds)
        found, all_ready = [await store.messages.fetch(query) for store in (self.with_marks, self.without)]
        if found != all_ready:
            raise EventHiddenError({message.id for message in all_ready} - {message.id for message in found})
        return found

    async def step(self) -> None:
        steps = [self.record, self.record, self.savepoint, self.undo, self.commit, self.commit, self.roll_back]
        steps += [self.prepare, self.end_prepared, self.search, self.search, self.fetch, self.settle, self.settle]
        steps += [self.hold, self.split, self.count_attempt, self.fetch_held, self.ask, self.retry_dead]
        await self.random.choice(steps)()
        await self.compare()

    # What producers do.

    async def record(self) -> None:
        producer = self.random.choice(self.producers)
        if not producer.is_open and self.random.random() < 0.7:
            await producer.sql.execute("BEGIN")
            producer.is_open = True
        for _ in range(self.random.randint(1, 3)):
            await producer.sql.execute(RECORD, f"event-{next(self.numbers)}", f"key-{self.random.randrange(KEYS)}")

    async def savepoint(self) -> None:
        if opened := self._opened():
            opened.savepoints.append(f"savepoint_{next(self.numbers)}")
            await opened.sql.execute(f"SAVEPOINT {opened.savepoints[-1]}")
            await opened.sql.execute(RECORD, f"event-{next(self.numbers)}", f"key-{self.random.randrange(KEYS)}")

    async def undo(self) -> None:
        if (opened := self._opened()) and opened.savepoints:
            await opened.sql.execute(f"ROLLBACK TO {opened.savepoints.pop()}")

    async def commit(self) -> None:
        await self._end("COMMIT")

    async def roll_back(self) -> None:
        await self._end("ROLLBACK")

    async def prepare(self) -> None:
        name = f"prepared_{id(self)}_{next(self.numbers)}"
        if await self._end(f"PREPARE TRANSACTION '{name}'"):
            self.prepared.append(name)
        while len(self.prepared) > PRODUCERS:
            await self.end_prepared()

    async def end_prepared(self) -> None:
        if self.prepared:
            name = self.prepared.pop(self.random.randrange(len(self.prepared)))
            verb = self.random.choice(["COMMIT", "COMMIT", "ROLLBACK"])
            await self.sql.execute(f"{verb} PREPARED '{name}'")

    async def _end(self, statement: str) -> bool:
        opened = self._opened()
        if opened is None:
            return False
        await opened.sql.execute(statement)
        opened.is_open, opened.savepoints = False, []
        return True

    def _opened(self) -> Producer | None:
        opened = [producer for producer in self.producers if producer.is_open]
        return self.random.choice(opened) if opened else None

    # What the relay does.

    async def search(self) -> None:
        await self.with_marks.messages.low_water_marks.search(LANES)

    async def fetch(self) -> None:
        found = await self.compare()
        self.in_flight += found[: self.random.randint(1, 20)]

    async def fetch_held(self) -> None:
        for query in (Due(lanes=LANES), Parked(lanes=LANES, destinations=["x", "y"])):
            found = await self.without.messages.fetch(query)
            known = {message.position for message in self.in_flight}
            self.in_flight += [message for message in found if message.position not in known]

    async def settle(self) -> None:
        outcomes = [self.random.choice(OUTCOMES) for _ in range(10)]
        taken = self._take(len(outcomes))
        decisions = [
            Decision(message, outcome, message.destination or "x")
            for message, outcome in zip(taken, outcomes, strict=False)
        ]
        await self.without.writes.settle(self.epochs, decisions)

    async def hold(self) -> None:
        held = self.random.choice([Held.WAITING, Held.PARKED])
        await self.without.writes.hold(
            self.epochs, [Resolved(message, message.destination or "x") for message in self._take(3)], held
        )

    async def split(self) -> None:
        whole = [message for message in self._take(3) if not message.destination]
        await self.without.writes.split(self.epochs, [Split(message, ("x", "y")) for message in whole])

    async def count_attempt(self) -> None:
        resolved = [Resolved(message, message.destination or "x") for message in self._take(3)]
        await self.without.writes.count_attempt(self.epochs, resolved, error="down")

    def _take(self, most: int) -> list[Message]:
        self.random.shuffle(self.in_flight)
        taken, self.in_flight = self.in_flight[:most], self.in_flight[most:]
        return taken

    # What an operator does.

    async def ask(self) -> None:
        rows = await self.sql.fetch("SELECT event_id, destination FROM outbox_message ORDER BY md5(event_id) LIMIT 3")
        events = [(row["event_id"], row["destination"]) for row in rows]
        await self.without.admin.requests.add(self.random.choice(ACTIONS), events)
        flying = [message.position for message in self.in_flight]
        await self.without.writes.execute_requests(self.epochs, in_flight=flying)

    async def retry_dead(self) -> None:
        await self.sql.execute("SELECT outbox_retry(event_id) FROM (SELECT event_id FROM outbox_dead_letter LIMIT 2) d")


@asynccontextmanager
async def walking(url: str, seed: int) -> AsyncIterator[Walk]:
    """A walk on this database."""
    connections = [await asyncpg.connect(url) for _ in range(PRODUCERS + 1)]
    try:
        async with aclosing(PostgresStore(url)) as with_marks, aclosing(PostgresStore(url)) as without:
            without.messages.low_water_marks.slow = math.inf
            # Marks stay, however fast the fetches are.
            with_marks.messages.low_water_marks.slow = -1
            await without.lanes.join(RelayRegistration(id="a"), lease=600)
            epochs = epochs_of(await without.lanes.acquire("a", limit=len(LANES)))
            sql, *producers = connections
            yield Walk(Random(seed), with_marks, without, sql, [Producer(one) for one in producers], epochs)
    finally:
        for name in await connections[0].fetch("SELECT gid FROM pg_prepared_xacts WHERE database = current_database()"):
            await connections[0].execute(f"ROLLBACK PREPARED '{name['gid']}'")
        for connection in connections:
            await connection.close()
