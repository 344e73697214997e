"""Prefetch: it bounds unacknowledged messages; none is delivered to two consumers; unacknowledged ones return."""

from __future__ import annotations

import asyncio

import pytest

from pillarbox.core.errors import UnavailableError
from pillarbox.testing.conformance.sources.capability import needs
from pillarbox.testing.conformance.sources.harness import PREFETCH, SourceHarness
from pillarbox.testing.conformance.sources.receive import BOUND, incoming, take, take_through_outages, taken_ids

IDS = [f"e{n}" for n in range(6)]


class PrefetchConformance:
    async def test_at_most_prefetch_messages_are_unacknowledged(self, harness: SourceHarness) -> None:
        needs(harness, "competing")
        await harness.put(*(incoming(one) for one in IDS))
        held = [await take(harness.source) for _ in range(PREFETCH)]
        waiting = asyncio.create_task(harness.source.receive())
        # Another consumer receives the next one, so it was available.
        other = harness.another()
        assert (await take(other)).incoming.event_id == IDS[PREFETCH]
        await other.aclose()
        assert not waiting.done()
        await held[0].ack()
        async with asyncio.timeout(BOUND):
            assert (await waiting).incoming.event_id in IDS[PREFETCH:]

    async def test_consumers_share_the_queue_and_no_message_is_delivered_to_two(self, harness: SourceHarness) -> None:
        needs(harness, "competing")
        await harness.put(*(incoming(one) for one in IDS))
        first, second = harness.source, harness.another()
        one = [await take(first) for _ in range(2)]
        other = [await take(second) for _ in range(2)]
        ids = [delivery.incoming.event_id for delivery in (*one, *other)]
        assert len(set(ids)) == 4
        for delivery in (*one, *other):
            await delivery.ack()

    async def test_unacknowledged_messages_are_redelivered_after_a_close(self, harness: SourceHarness) -> None:
        await harness.put(incoming("a"), incoming("b"))
        await take(harness.source)
        await harness.source.aclose()
        again = harness.another()
        assert sorted(str(one) for one in await taken_ids(again, 2)) == ["a", "b"]

    async def test_an_acknowledgement_after_the_close_is_unavailable(self, harness: SourceHarness) -> None:
        await harness.put(incoming("a"))
        delivery = await take(harness.source)
        await harness.source.aclose()
        async with asyncio.timeout(BOUND):
            with pytest.raises(UnavailableError):
                await delivery.ack()
            with pytest.raises(UnavailableError):
                await delivery.retry(delay=0, reason="late")
            with pytest.raises(UnavailableError):
                await delivery.reject("late")
        assert (await take_through_outages(harness.another())).incoming.event_id == "a"

    async def test_a_message_that_crashes_its_consumers_is_delivered_alone_with_their_number(
        self, harness: SourceHarness
    ) -> None:
        await harness.put(incoming("poison"), incoming("b"))
        alone: list[tuple[bool, int]] = []
        destinations: set[str] = set()
        for _ in range(5):
            source = harness.another()
            while (delivery := await take_through_outages(source)).incoming.event_id != "poison":
                await delivery.ack()
            alone.append((delivery.quarantined, delivery.crashes))
            destinations.add(delivery.incoming.destination)
            await source.aclose()
        assert alone == [(False, 0), (False, 0), (True, 0), (True, 1), (True, 2)]
        assert destinations == {harness.destination}

    async def test_a_cancelled_receive_loses_nothing(self, harness: SourceHarness) -> None:
        for turns in range(6):
            waiting = asyncio.create_task(harness.source.receive())
            for _ in range(turns):
                await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait({waiting})
        await harness.put(incoming("a"))
        assert await taken_ids(harness.source, 1) == ["a"]

    async def test_closing_twice_is_fine_and_ends_receiving(self, harness: SourceHarness) -> None:
        async with asyncio.timeout(BOUND):
            await harness.source.aclose()
            await harness.source.aclose()
            with pytest.raises(UnavailableError):
                await harness.source.receive()
