"""Attempts: a failed send is recorded once with its error, and every send with its duration."""

from __future__ import annotations

import pytest

from pillarbox.admin.listing import Failure
from pillarbox.core.outcome import DELIVERED, Dead, Decision, Outcome, Retry
from pillarbox.core.store import Retention
from pillarbox.testing.conformance.capability import needing
from pillarbox.testing.conformance.events import HOUR, event
from pillarbox.testing.conformance.harness import StoreHarness
from pillarbox.testing.conformance.lane_owner import Owner

NOW = Retry(delay=0, error="not now", counted=False)
FAILURES = {
    "retry": Retry(delay=HOUR, error="no"),
    "nack": Retry(delay=HOUR, error="no", counted=False),
    "dead letter": Dead(error="no"),
    "block": Dead(error="no", block=True),
}

each_failure = pytest.mark.parametrize("outcome", FAILURES.values(), ids=FAILURES.keys())
# Exact in four and in eight bytes. Zero seconds differ from an unknown duration.
LENGTHS = {"short": 0.0078125, "none": 0.0, "long": 4096.5, "unknown": None}


async def failures(harness: StoreHarness, event_id: str) -> list[Failure]:
    return (await harness.store.admin.events.show(event_id)).failures


async def _settled(harness: StoreHarness, outcome: Outcome) -> None:
    """Settle one event for each duration, in one write."""
    owner = await Owner.of(harness.store)
    await harness.commit(*(event(name, destination="x") for name in LENGTHS))
    decisions = [Decision(m, outcome, "x", LENGTHS[m.event_id]) for m in await owner.ready()]
    assert (await harness.store.writes.settle(owner.epochs, decisions)).count == len(LENGTHS)


class AttemptsConformance:
    @needing("listings")
    async def test_failed_sends_are_listed_newest_first(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a"))
        await owner.settle(Retry(delay=0, error="one"), *await owner.ready(), to="x", seconds=0.5)
        await owner.settle(NOW, *await owner.due(), seconds=0.25)
        await owner.settle(Dead(error="three"), *await owner.due(), seconds=2)
        found = await failures(harness, "a")
        assert [(f.destination, f.attempt, f.counted, f.error, f.seconds) for f in found] == [
            ("x", 3, True, "three", 2),
            ("x", 2, False, "not now", 0.25),
            ("x", 1, True, "one", 0.5),
        ]
        assert [f.attempted_at for f in found] == sorted((f.attempted_at for f in found), reverse=True)

    @each_failure
    @needing("listings")
    async def test_a_failed_send_keeps_its_duration(self, harness: StoreHarness, outcome: Outcome) -> None:
        await _settled(harness, outcome)
        assert {name: [f.seconds for f in await failures(harness, name)] for name in LENGTHS} == {
            name: [seconds] for name, seconds in LENGTHS.items()
        }

    @each_failure
    @needing("listings")
    async def test_a_message_routed_during_the_send_keeps_its_duration(
        self, harness: StoreHarness, outcome: Outcome
    ) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a"))
        await owner.settle(outcome, *await owner.ready(), to="x", seconds=0.5)
        [failed] = await failures(harness, "a")
        assert (failed.destination, failed.seconds) == ("x", 0.5)

    @needing("listings")
    async def test_a_delivery_keeps_its_duration(self, harness: StoreHarness) -> None:
        await _settled(harness, DELIVERED)
        details = {name: await harness.store.admin.events.show(name) for name in LENGTHS}
        assert {name: [detail.seconds for detail in shown.events] for name, shown in details.items()} == {
            name: [seconds] for name, seconds in LENGTHS.items()
        }
        assert [failure for shown in details.values() for failure in shown.failures] == []

    @needing("listings")
    async def test_only_the_delivered_copy_of_an_event_has_a_duration(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a"))
        await owner.split((await owner.ready())[0], "w", "x", "y", "z")
        w, x, y, _ = sorted(await owner.ready(), key=lambda message: message.destination)
        await owner.settle(DELIVERED, w, seconds=1)
        await owner.settle(DELIVERED, x, seconds=2)
        await owner.settle(Dead(error="no"), y, seconds=3)
        shown = await harness.store.admin.events.show("a")
        assert [(detail.destination, detail.seconds) for detail in shown.events] == [
            ("w", 1),
            ("x", 2),
            ("y", None),
            ("z", None),
        ]
        assert [(failed.destination, failed.seconds) for failed in shown.failures] == [("y", 3)]

    @each_failure
    @needing("listings")
    async def test_a_decision_written_twice_is_one_attempt(self, harness: StoreHarness, outcome: Outcome) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", destination="x"))
        messages = await owner.ready()
        for _ in range(2):  # As after a lost answer to the first settlement.
            await owner.settle(outcome, *messages, seconds=0.5)
        [failed] = await failures(harness, "a")
        assert (failed.attempt, failed.seconds) == (1, 0.5)

    @needing("listings")
    @pytest.mark.parametrize("block", [False, True])
    async def test_dead_lettering_without_a_send_is_not_an_attempt(self, harness: StoreHarness, block: bool) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a"), event("b"))
        a, b = await owner.ready()
        await owner.settle(Dead(error="no route", block=block, counted=False), a)
        await owner.settle(Dead(error="no", block=block), b)
        assert (await failures(harness, "a"), len(await failures(harness, "b"))) == ([], 1)

    @needing("listings", "requests")
    async def test_dead_lettering_by_an_operator_is_not_an_attempt(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", destination="x"))
        await owner.settle(Retry(delay=HOUR, error="no"), *await owner.ready(), seconds=0.5)
        await harness.store.admin.requests.add("dead_letter", [("a", "x")])
        await owner.execute_requests()
        story = await harness.store.admin.events.show("a")
        assert [detail.dead_letter_id is not None for detail in story.events] == [True]
        assert [failed.seconds for failed in story.failures] == [0.5]

    @needing("listings")
    async def test_attempts_are_kept_as_long_as_history_and_dead_letters(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a"))
        await owner.settle(Retry(delay=HOUR, error="no"), *await owner.ready())
        for kept in (Retention(), Retention(history=0), Retention(dead=0), Retention(history=0, dead=HOUR)):
            await harness.store.pruning.prune(kept)
            assert len(await failures(harness, "a")) == 1
        await harness.store.pruning.prune(Retention(history=0, dead=0))
        assert await failures(harness, "a") == []
