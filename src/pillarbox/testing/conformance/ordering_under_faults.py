"""Many messages through failures and takeovers: none lost, none twice, each key in order."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from pillarbox.core.message import Held, Message
from pillarbox.core.outcome import DELIVERED, Dead, Retry
from pillarbox.testing.conformance.events import event
from pillarbox.testing.conformance.harness import StoreHarness
from pillarbox.testing.conformance.lane_owner import Owner

QueueName = tuple[str | None, str]


@dataclass
class RandomRelay:
    """A minimal relay: fetches with every query, sends in order, and fails at random."""

    owner: Owner
    rng: random.Random
    failures: float = 0.4
    delivered: list[Message] = field(default_factory=list)

    async def fetch_and_send(self) -> int:
        """Fetch with every query and send; return the number of fetched messages."""
        fetched = await self._send(await self.owner.parked("x", "y", limit=40))
        fetched += await self._send(await self.owner.due(limit=40))
        fetched += await self._send(await self.owner.ready(limit=40, quota=10))
        return fetched + await self._send(await self.owner.waiting(*await self.owner.orphaned_queues(), limit=40))

    async def _send(self, batch: list[Message]) -> int:
        stopped: set[QueueName] = set()
        for message in sorted(batch, key=lambda m: m.id):
            queue = (message.key, message.destination)
            if message.must_wait or (message.key is not None and queue in stopped):
                await self.owner.hold(Held.WAITING, message)
            elif self.rng.random() < self.failures:
                stopped.add(queue)
                await self._fail(message)
            else:
                await self.owner.settle(DELIVERED, message)
                self.delivered.append(message)
        return len(batch)

    async def _fail(self, message: Message) -> None:
        if self.rng.random() < 0.3:
            await self.owner.hold(Held.PARKED, message)
        else:
            counted = self.rng.random() < 0.5
            await self.owner.settle(Retry(delay=0, error="no", counted=counted), message)


class OrderingUnderFaultsConformance:
    async def test_order_within_a_key_survives_retries_and_takeovers(self, harness: StoreHarness) -> None:
        rng = random.Random(7)
        stores = [harness.store, await harness.second_store()]
        relay = RandomRelay(await Owner.of(harness.store), rng)
        recorded: dict[QueueName, list[str]] = {}
        for turn in range(12):
            for n in range(6):
                key, destination = rng.choice(["k", "j", None]), rng.choice(["x", "y"])
                event_id = f"{turn}-{n}"
                await harness.commit(event(event_id, key, destination=destination))
                recorded.setdefault((key, destination), []).append(event_id)
            await relay.fetch_and_send()
            if turn % 3 == 2:
                relay.owner = await relay.owner.taken_over(stores[turn % 2])
        for _ in range(500):
            if not await relay.fetch_and_send():
                break
        received: dict[QueueName, list[str]] = {}
        for message in relay.delivered:
            received.setdefault((message.key, message.destination), []).append(message.event_id)
        for queue in recorded:
            if queue[0] is None:
                assert sorted(received[queue]) == sorted(recorded[queue])
            else:
                assert received[queue] == recorded[queue]

    async def test_a_dead_letter_in_the_middle_keeps_the_rest_in_order(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(*(event(f"{n}", "k") for n in range(6)))
        messages = await owner.ready()
        await owner.settle(Dead(error="no"), messages[2])
        await owner.hold(Held.WAITING, *messages[:2], *messages[3:])
        relay = RandomRelay(owner, random.Random(0), failures=0)
        await relay.fetch_and_send()
        assert [m.event_id for m in relay.delivered] == ["0", "1", "3", "4", "5"]
