"""Outages: receiving reports an outage and resumes by itself; no message in flight or delayed is lost."""

from __future__ import annotations

import asyncio

import pytest

from pillarbox.core.errors import UnavailableError
from pillarbox.testing.conformance.sources.capability import needs
from pillarbox.testing.conformance.sources.harness import SourceHarness
from pillarbox.testing.conformance.sources.receive import BOUND, incoming, take, take_through_outages, taken_ids


class SourceOutageConformance:
    async def test_receiving_without_a_connection_is_unavailable_and_shows_no_secret(
        self, harness: SourceHarness
    ) -> None:
        needs(harness, "outages")
        await harness.put(incoming("a"))
        await harness.cut()
        async with asyncio.timeout(BOUND):
            with pytest.raises(UnavailableError) as caught:
                await harness.source.receive()
        shown = f"{caught.value} {harness.source!r}"
        assert [secret for secret in harness.secrets if secret in shown] == []
        await harness.heal()
        assert await taken_ids(harness.source, 1) == ["a"]

    async def test_a_waiting_receive_fails_on_a_lost_connection(self, harness: SourceHarness) -> None:
        needs(harness, "outages")
        await harness.put(incoming("a"))
        held = await take(harness.source)
        waiting = asyncio.create_task(harness.source.receive())
        await harness.cut()
        async with asyncio.timeout(BOUND):
            with pytest.raises(UnavailableError):
                await waiting
            with pytest.raises(UnavailableError):
                await held.ack()
        await harness.heal()
        assert await taken_ids(harness.source, 1) == ["a"]

    async def test_a_lost_acknowledgement_causes_a_redelivery(self, harness: SourceHarness) -> None:
        needs(harness, "outages")
        await harness.put(incoming("a"))
        held = await take(harness.source)
        await harness.cut()
        async with asyncio.timeout(BOUND):
            with pytest.raises(UnavailableError):
                await held.reject("not transmitted")
        await harness.heal()
        assert await taken_ids(harness.source, 1) == ["a"]
        assert await harness.dead() == []

    async def test_delayed_messages_and_their_counts_survive_a_restart(self, harness: SourceHarness) -> None:
        needs(harness, "survives_restart")
        await harness.put(incoming("a"), incoming("b"))
        await (await take(harness.source)).retry(delay=0.05, reason="first")
        await (await take(harness.source)).retry(delay=0.05, reason="first")
        await harness.restart()
        again = [await take_through_outages(harness.source) for _ in range(2)]
        assert sorted((str(one.incoming.event_id), one.incoming.attempts) for one in again) == [("a", 1), ("b", 1)]
