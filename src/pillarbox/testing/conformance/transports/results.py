"""Results: one per message, in order; a failed message does not affect its neighbours."""

from __future__ import annotations

import asyncio

from pillarbox.core.errors import PermanentError, RejectedError
from pillarbox.testing.conformance.transports.capability import needs
from pillarbox.testing.conformance.transports.harness import TransportHarness
from pillarbox.testing.conformance.transports.sending import BOUND, arrived_ids, outgoing, send


class ResultConformance:
    async def test_an_empty_batch_has_no_results(self, harness: TransportHarness) -> None:
        assert await send(harness) == []

    async def test_a_full_batch_has_as_many_results(self, harness: TransportHarness) -> None:
        address, size = harness.address(), harness.transport.pace.batch_size
        assert await send(harness, *(outgoing(f"e{n}", address) for n in range(size))) == [None] * size
        assert len(await arrived_ids(harness, address, size)) == size

    async def test_addresses_have_the_address_type(self, harness: TransportHarness) -> None:
        assert isinstance(harness.address(), harness.transport.address_type)
        assert harness.address(0) == harness.address(0) != harness.address(1)
        assert hash(harness.address(0)) == hash(harness.address(0))

    async def test_defaults_have_names_and_addresses_of_that_type(self, harness: TransportHarness) -> None:
        for name, address in harness.transport.defaults("thing.happened").items():
            assert name
            assert isinstance(address, harness.transport.address_type)

    async def test_the_pace_allows_messages(self, harness: TransportHarness) -> None:
        assert harness.transport.pace.batch_size >= 1
        assert harness.transport.pace.concurrency >= 1

    async def test_an_unroutable_message_is_rejected_and_may_be_retried(self, harness: TransportHarness) -> None:
        needs(harness, "routes")
        [result] = await send(harness, outgoing("a", harness.unroutable()))
        assert isinstance(result, RejectedError)
        assert not isinstance(result, PermanentError)

    async def test_the_neighbours_of_an_unroutable_message_arrive(self, harness: TransportHarness) -> None:
        needs(harness, "routes")
        address, unroutable = harness.address(), harness.unroutable()
        before, lost, after = await send(
            harness, outgoing("a", address), outgoing("b", unroutable), outgoing("c", address, body=b"")
        )
        assert (before, type(lost), after) == (None, RejectedError, None)
        assert sorted(await arrived_ids(harness, address, 2)) == ["a", "c"]

    async def test_of_one_event_only_the_unroutable_copy_is_rejected(self, harness: TransportHarness) -> None:
        needs(harness, "routes")
        addresses = [harness.address(0), harness.unroutable(), harness.address(1)]
        results = await send(harness, *(outgoing("a", address) for address in addresses))
        assert [type(result) for result in results] == [type(None), RejectedError, type(None)]

    async def test_in_an_unroutable_batch_each_message_is_rejected(self, harness: TransportHarness) -> None:
        needs(harness, "routes")
        size = min(harness.transport.pace.batch_size, 30)
        results = await send(harness, *(outgoing(f"e{n}", harness.unroutable()) for n in range(size)))
        assert [type(result) for result in results] == [RejectedError] * size

    async def test_an_unroutable_message_does_not_affect_later_messages(self, harness: TransportHarness) -> None:
        needs(harness, "routes")
        address = harness.address()
        await send(harness, outgoing("a", harness.unroutable()))
        assert await send(harness, outgoing("b", address)) == [None]
        assert await arrived_ids(harness, address, 1) == ["b"]

    async def test_a_message_that_can_never_be_sent_fails_permanently_and_alone(
        self, harness: TransportHarness
    ) -> None:
        needs(harness, "refuses")
        address = harness.address()
        batch = [outgoing("a", address), harness.spoiled(outgoing("b", address)), outgoing("c", address)]
        before, refused, after = await send(harness, *batch)
        assert (before, after) == (None, None)
        assert isinstance(refused, PermanentError)
        assert set(await arrived_ids(harness, address, 2)) == {"a", "c"}

    async def test_concurrent_sends_are_not_affected_by_a_failure(self, harness: TransportHarness) -> None:
        needs(harness, "refuses")
        good, bad = harness.address(0), harness.address(1)
        batches = [[outgoing(f"good{n}", good)] for n in range(3)]
        batches.insert(1, [harness.spoiled(outgoing("bad", bad))])
        async with asyncio.timeout(BOUND):
            first, failed, second, third = await asyncio.gather(*(send(harness, *batch) for batch in batches))
        assert (first, second, third) == ([None], [None], [None])
        assert [type(result) for result in failed] == [PermanentError]
        assert set(await arrived_ids(harness, good, 3)) == {"good0", "good1", "good2"}
