"""Delivery: accepted messages arrive at their address, in order, and survive a restart."""

from __future__ import annotations

import asyncio

from pillarbox.testing.conformance.transports.capability import needs
from pillarbox.testing.conformance.transports.harness import TransportHarness
from pillarbox.testing.conformance.transports.sending import arrived_ids, outgoing, send


class DeliveryConformance:
    async def test_an_accepted_message_arrives(self, harness: TransportHarness) -> None:
        address = harness.address()
        assert await send(harness, outgoing("a", address)) == [None]
        assert await arrived_ids(harness, address, 1) == ["a"]

    async def test_messages_arrive_where_they_were_sent_and_nowhere_else(self, harness: TransportHarness) -> None:
        here, there = harness.address(0), harness.address(1)
        batch = [outgoing("a", here), outgoing("b", there), outgoing("c", here)]
        assert await send(harness, *batch) == [None, None, None]
        assert sorted(await arrived_ids(harness, here, 2)) == ["a", "c"]
        assert await arrived_ids(harness, there, 1) == ["b"]

    async def test_one_event_may_go_to_several_addresses_in_one_batch(self, harness: TransportHarness) -> None:
        here, there = harness.address(0), harness.address(1)
        assert await send(harness, outgoing("a", here), outgoing("a", there)) == [None, None]
        assert await arrived_ids(harness, here, 1) == ["a"]
        assert await arrived_ids(harness, there, 1) == ["a"]

    async def test_a_batch_arrives_in_order(self, harness: TransportHarness) -> None:
        needs(harness, "ordered")
        address, ids = harness.address(), [f"e{n}" for n in range(200)]
        ids = ids[: harness.transport.pace.batch_size]
        assert await send(harness, *(outgoing(one, address) for one in ids)) == [None] * len(ids)
        assert await arrived_ids(harness, address, len(ids)) == ids

    async def test_one_send_after_another_arrives_in_order(self, harness: TransportHarness) -> None:
        address, ids = harness.address(), [f"e{n}" for n in range(20)]
        for one in ids:
            assert await send(harness, outgoing(one, address)) == [None]
        assert await arrived_ids(harness, address, len(ids)) == ids

    async def test_concurrent_sends_arrive_exactly_once(self, harness: TransportHarness) -> None:
        pace = harness.transport.pace
        size = min(pace.batch_size, 50)
        addresses = [harness.address(n) for n in range(min(pace.concurrency, 4))]
        batches = [[outgoing(f"{n}-{m}", address) for m in range(size)] for n, address in enumerate(addresses)]
        results = await asyncio.gather(*(send(harness, *batch) for batch in batches))
        assert results == [[None] * size] * len(addresses)
        for address, batch in zip(addresses, batches, strict=True):
            ids = await arrived_ids(harness, address, size)
            assert sorted(ids) == sorted(one.message.event_id for one in batch)

    async def test_accepted_messages_survive_a_restart(self, harness: TransportHarness) -> None:
        needs(harness, "survives_restart")
        address, ids = harness.address(), [f"e{n}" for n in range(50)]
        assert await send(harness, *(outgoing(one, address) for one in ids)) == [None] * len(ids)
        await harness.restart()
        assert await arrived_ids(harness, address, len(ids)) == ids
