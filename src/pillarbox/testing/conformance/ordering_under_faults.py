"""Many messages through failures and takeovers: none lost, none twice, each key in order."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from pillarbox.core.message import Held, Message
from pillarbox.core.outcome import DELIVERED, Dead, Retry
from pillarbox.testing.conformance.events import event
from pillarbox.testing.conformance.harness import StoreHarness
from pillarbox.testing.conformance.lane_owner import Owner

Queue = tuple[str | None, str]


@dataclass
class Carrier:
    """A minimal relay: fetches in every way, sends what may be sent, and fails at random."""

    owner: Owner
    chance: random.Random
    failures: float = 0.4
    delivered: list[Message] = field(default_factory=list)

    async def round(self) -> int:
        """Fetch in every way; return the number of messages."""
        met = await self._work(await self.owner.parked("x", "y", limit=40))
        met += await self._work(await self.owner.due(limit=40))
        met += await self._work(await self.owner.ready(limit=40, quota=10))
        return met + await self._work(await self.owner.waiting(*await self.owner.orphaned_queues(), limit=40))

    async def _work(self, batch: list[Message]) -> int:
        stopped: set[Queue] = set()
        for message in sorted(batch, key=lambda m: m.id):
            line = (message.key, message.destination)
            if message.must_wait or (message.key is not None and line in stopped):
                await self.owner.hold(Held.WAITING, message)
            elif self.chance.random() < self.failures:
                stopped.add(line)
                await self._fail(message)
            else:
                await self.owner.settle(DELIVERED, message)
                self.delivered.append(message)
        return len(batch)

    async def _fail(self, message: Message) -> None:
        if self.chance.random() < 0.3:
            await self.owner.hold(Held.PARKED, message)
        else:
            counted = self.chance.random() < 0.5
            await self.owner.settle(Retry(delay=0, error="no", counted=counted), message)


class OrderingUnderFaultsConformance:
    async def test_order_within_a_key_survives_retries_and_takeovers(self, harness: StoreHarness) -> None:
        chance = random.Random(7)
        stores = [harness.store, await harness.second_store()]
        carrier = Carrier(await Owner.of(harness.store), chance)
        recorded: dict[Queue, list[str]] = {}
        for turn in range(12):
            for n in range(6):
                key, destination = chance.choice(["k", "j", None]), chance.choice(["x", "y"])
                event_id = f"{turn}-{n}"
                await harness.commit(event(event_id, key, destination=destination))
                recorded.setdefault((key, destination), []).append(event_id)
            await carrier.round()
            if turn % 3 == 2:
                carrier.owner = await carrier.owner.taken_over(stores[turn % 2])
        for _ in range(500):
            if not await carrier.round():
                break
        received: dict[Queue, list[str]] = {}
        for message in carrier.delivered:
            received.setdefault((message.key, message.destination), []).append(message.event_id)
        for line in recorded:
            if line[0] is None:
                assert sorted(received[line]) == sorted(recorded[line])
            else:
                assert received[line] == recorded[line]

    async def test_a_dead_letter_in_the_middle_keeps_the_rest_in_order(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(*(event(f"{n}", "k") for n in range(6)))
        messages = await owner.ready()
        await owner.settle(Dead(error="no"), messages[2])
        await owner.hold(Held.WAITING, *messages[:2], *messages[3:])
        carrier = Carrier(owner, random.Random(0), failures=0)
        await carrier.round()
        assert [m.event_id for m in carrier.delivered] == ["0", "1", "3", "4", "5"]
