"""Acknowledgement: acked messages are removed, retried ones redelivered with a count, rejected ones dead-lettered."""

from __future__ import annotations

import asyncio

from pillarbox.testing.conformance.sources.harness import SourceHarness
from pillarbox.testing.conformance.sources.receive import (
    SOON,
    incoming,
    take,
    take_through_outages,
    taken_ids,
    wait_for_dead_letters,
)

DELAY = 0.1
"""Seconds of a delay that is told apart from none."""


class AcknowledgementConformance:
    async def test_an_acknowledged_message_is_not_redelivered(self, harness: SourceHarness) -> None:
        await harness.put(incoming("a"), incoming("b"))
        await (await take(harness.source)).ack()
        await harness.source.aclose()
        await harness.put(incoming("c"))
        assert await taken_ids(harness.another(), 2) == ["b", "c"]
        assert await harness.dead() == []

    async def test_a_retried_message_is_redelivered_with_its_count(self, harness: SourceHarness) -> None:
        await harness.put(incoming("a", body=b"whole", headers={"h": "1"}))
        for attempts in range(3):
            delivery = await take(harness.source)
            got = delivery.incoming
            assert (got.event_id, got.body, got.headers["h"], got.attempts) == ("a", b"whole", "1", attempts)
            await delivery.retry(delay=SOON, reason="not yet")

    async def test_a_retried_message_is_not_redelivered_before_its_delay(self, harness: SourceHarness) -> None:
        await harness.put(incoming("a"))
        delivery, loop = await take(harness.source), asyncio.get_running_loop()
        retried_at = loop.time()
        await delivery.retry(delay=DELAY, reason="not yet")
        await take(harness.source)
        assert loop.time() >= retried_at + DELAY * 0.9  # clocks differ in their resolution

    async def test_a_deferral_is_counted_separately(self, harness: SourceHarness) -> None:
        await harness.put(incoming("a"))
        await (await take(harness.source)).retry(delay=SOON, reason="no database", counted=False)
        await (await take(harness.source)).retry(delay=SOON, reason="no idea")
        got = (await take(harness.source)).incoming
        assert (got.attempts, got.deferrals) == (1, 1)

    async def test_other_messages_do_not_wait_for_a_retried_one(self, harness: SourceHarness) -> None:
        await harness.put(incoming("a"), incoming("b"), incoming("c"))
        await (await take(harness.source)).retry(delay=SOON, reason="not yet")
        assert sorted(str(one) for one in await taken_ids(harness.source, 3)) == ["a", "b", "c"]

    async def test_a_delayed_message_does_not_need_its_consumer(self, harness: SourceHarness) -> None:
        await harness.put(incoming("a"))
        await (await take(harness.source)).retry(delay=SOON, reason="not yet")
        await harness.source.aclose()
        assert (await take_through_outages(harness.another())).incoming.attempts == 1

    async def test_a_rejected_message_becomes_a_complete_dead_letter(self, harness: SourceHarness) -> None:
        await harness.put(incoming("a", body=b"\xff\x00"), incoming("b"))
        await (await take(harness.source)).reject("unusable: ключ")
        [dead_letter] = await wait_for_dead_letters(harness, 1)
        assert dead_letter == ("a", b"\xff\x00", 1, "unusable: ключ")
        assert await taken_ids(harness.source, 1) == ["b"]

    async def test_a_dead_letter_has_its_number_of_failures(self, harness: SourceHarness) -> None:
        await harness.put(incoming("a"))
        await (await take(harness.source)).retry(delay=SOON, reason="first")
        await (await take(harness.source)).reject("second")
        [dead_letter] = await wait_for_dead_letters(harness, 1)
        assert (dead_letter.attempts, dead_letter.reason) == (2, "second")

    async def test_an_empty_message_can_be_rejected(self, harness: SourceHarness) -> None:
        await harness.put(incoming(None, event_type=None, content_type=None, body=b"?"))
        await (await take(harness.source)).reject("no id")
        [dead_letter] = await wait_for_dead_letters(harness, 1)
        assert (dead_letter.event_id, dead_letter.body) == (None, b"?")
