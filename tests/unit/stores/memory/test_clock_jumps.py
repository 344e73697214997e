"""Leases in memory use elapsed time, so that jumps of the wall clock do not affect them."""

from datetime import datetime, timedelta

import pytest

from pillarbox.core.clock import SystemClock
from pillarbox.core.lane import InFlightMessage
from pillarbox.core.message import Status
from pillarbox.stores.memory import MemoryStore
from pillarbox.testing.conformance.events import event
from pillarbox.testing.conformance.lane_owner import Owner
from pillarbox.testing.memory import MemoryHarness

LEASE = 15.0
HOUR = timedelta(hours=1)


class Host(SystemClock):
    """A host whose wall clock may jump."""

    def __init__(self) -> None:
        self.up = 500_000.0
        self.jumped = timedelta()

    def now(self) -> datetime:
        return super().now() + self.jumped

    def monotonic(self) -> float:
        return self.up


@pytest.fixture
def host() -> Host:
    return Host()


@pytest.fixture
def store(host: Host) -> MemoryStore:
    return MemoryStore(clock=host)


async def test_a_clock_jump_takes_no_lane_from_a_running_relay(store: MemoryStore, host: Host) -> None:
    owner = await Owner.of(store, lease=LEASE)
    host.up += LEASE - 1
    host.jumped = HOUR
    other = await Owner.of(store, lease=LEASE)
    assert other.owned == []
    renewal = await store.lanes.renew(other.relay, lease=LEASE)
    assert renewal is not None
    assert renewal.relays == 2
    assert sorted(relay.lease for relay in (await store.admin.inspection.overview()).relays) == [1.0, LEASE]
    assert await store.lanes.renew(owner.relay, lease=LEASE) is not None


@pytest.mark.parametrize("jumped", [timedelta(), HOUR, -HOUR])
async def test_a_crashed_relay_loses_its_lanes_after_its_lease(
    store: MemoryStore, host: Host, jumped: timedelta
) -> None:
    dead = await Owner.of(store, lease=LEASE)
    host.jumped = jumped
    host.up += LEASE - 1
    successor = await Owner.of(store, lease=LEASE)
    assert successor.owned == []
    host.up += 1
    assert len(await successor.acquire(store.lanes.count)) == len(dead.lanes)
    assert await store.lanes.renew(dead.relay, lease=LEASE) is None


async def test_an_event_is_in_flight_while_the_lease_of_its_relay_is_valid(host: Host) -> None:
    harness = MemoryHarness(clock=host)
    await harness.commit(event("a", "k"))
    owner = await Owner.of(harness.store, lease=LEASE)
    await harness.store.lanes.renew(
        owner.relay, lease=LEASE, in_flight=[InFlightMessage(event_id="a", destination="", seconds=0.0)]
    )

    async def status() -> Status:
        [found] = (await harness.store.admin.events.show("a")).events
        return found.status

    host.jumped = HOUR
    assert await status() is Status.PROCESSING
    host.up += LEASE
    assert await status() is Status.PENDING
