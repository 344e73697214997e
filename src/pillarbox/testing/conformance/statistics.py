"""Statistics over time: the samples of relays are kept for a day, oldest first."""

from __future__ import annotations

from pillarbox.core.lane import EVERY_RELAY, RelayRegistration
from pillarbox.core.statistics import OUTBOX, BacklogStatistics, OutcomeStatistics
from pillarbox.core.store import Retention
from pillarbox.testing.conformance.capability import needing
from pillarbox.testing.conformance.events import HOUR, event
from pillarbox.testing.conformance.harness import StoreHarness


async def _recorded(harness: StoreHarness) -> int:
    return (await harness.store.statistics.backlog()).recorded


class StatisticsConformance:
    @needing("listings")
    async def test_samples_are_returned_as_recorded(self, harness: StoreHarness) -> None:
        carried = OutcomeStatistics(published=2, retried=1, dead=1)
        carried.count_delivered(0.3)
        level = BacklogStatistics(recorded=7, backlog=3, oldest=1.5, dead=1)
        await harness.store.statistics.add("a", {"orders": carried, OUTBOX: level})
        await harness.store.statistics.add("b", {"orders": OutcomeStatistics()})
        samples = await harness.store.admin.samples.since(HOUR)
        assert sorted((s.relay, s.destination) for s in samples) == [("a", OUTBOX), ("a", "orders"), ("b", "orders")]
        assert [s.values for s in samples if s.relay == "a" and s.destination == "orders"] == [carried]
        assert [s.values for s in samples if s.destination == OUTBOX] == [level]
        assert [s.at for s in samples] == sorted(s.at for s in samples)

    @needing("listings")
    async def test_old_samples_are_pruned(self, harness: StoreHarness) -> None:
        await harness.store.statistics.add("a", {"orders": OutcomeStatistics()})
        await harness.store.pruning.prune(Retention(samples=HOUR))
        assert len(await harness.store.admin.samples.since(HOUR)) == 1
        await harness.store.pruning.prune(Retention(samples=0))
        assert await harness.store.admin.samples.since(HOUR) == []

    async def test_recording_assigns_sequence_numbers(self, harness: StoreHarness) -> None:
        before = await _recorded(harness)
        await harness.commit(event("a"), event("b"))
        assert await _recorded(harness) == before + 2


class DrainConformance:
    async def test_a_relay_receives_its_drain_request(self, harness: StoreHarness) -> None:
        for name in ("one", "two"):
            await harness.store.lanes.join(RelayRegistration(id=f"id of {name}", name=name), lease=HOUR)
        assert await harness.store.admin.requests.drain("two", by="ann") == ["id of two"]
        drains = [await harness.store.lanes.renew(f"id of {name}", lease=HOUR) for name in ("one", "two")]
        assert [renewal is not None and renewal.drain for renewal in drains] == [False, True]
        assert {relay.name: relay.draining for relay in (await harness.store.admin.inspection.overview()).relays} == {
            "one": False,
            "two": True,
        }

    async def test_all_live_relays_receive_a_drain_request(self, harness: StoreHarness) -> None:
        await harness.store.lanes.join(RelayRegistration(id="alive"), lease=HOUR)
        await harness.store.lanes.join(RelayRegistration(id="dead"), lease=0)
        assert await harness.store.admin.requests.drain(EVERY_RELAY) == ["alive"]
        assert await harness.store.admin.requests.drain("unknown") == []
