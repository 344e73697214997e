"""Leases on SQLite use elapsed time, so that jumps of the wall clock do not affect them.

A clock that jumps an hour forward has the same effect as a stored time that moves an hour back: the tests move the
stored time.
"""

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pillarbox.core.clock import SystemClock
from pillarbox.core.lane import EVERY_RELAY, RelayRegistration
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.testing.conformance.lane_owner import Owner, join

LEASE = 15.0
HOUR = 3600
UPTIME = 500_000.0


class Host(SystemClock):
    """The elapsed time of a host."""

    def __init__(self) -> None:
        self.up = UPTIME

    def monotonic(self) -> float:
        return self.up


@pytest.fixture
def host() -> Host:
    return Host()


@pytest.fixture
async def store(path: Path, host: Host) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(path, clock=host)
    await store.schema.apply()
    yield store
    await store.aclose()


def jump(sql: sqlite3.Connection, seconds: int) -> None:
    """Simulate a jump of the wall clock."""
    moved = "strftime('%Y-%m-%dT%H:%M:%fZ', lease_until, ?)"
    sql.execute(f"UPDATE outbox_relay SET lease_until = {moved}", (f"{-seconds:+} seconds",))


async def leases(store: SqliteStore) -> list[float]:
    return [relay.lease for relay in (await store.admin.inspection.overview()).relays]


async def test_a_jump_forward_takes_no_lane_from_a_running_relay(
    store: SqliteStore, sql: sqlite3.Connection, host: Host
) -> None:
    owner = await Owner.of(store, lease=LEASE)
    host.up += LEASE - 1
    jump(sql, HOUR)
    other = await Owner.of(store, lease=LEASE)
    assert other.owned == []
    renewal = await store.lanes.renew(other.relay, lease=LEASE)
    assert renewal is not None
    assert renewal.relays == 2
    assert sorted(await leases(store)) == [1.0, LEASE]
    assert await store.admin.requests.drain(EVERY_RELAY) == sorted([owner.relay, other.relay])
    assert await store.lanes.renew(owner.relay, lease=LEASE) is not None


async def test_a_relay_can_acquire_lanes_after_a_jump_forward(store: SqliteStore, sql: sqlite3.Connection) -> None:
    relay = await join(store, lease=LEASE)
    jump(sql, HOUR)
    assert len(await store.lanes.acquire(relay, limit=1)) == 1


@pytest.mark.parametrize("jumped", [0, HOUR, -HOUR])
async def test_a_frozen_relay_loses_its_lanes_after_its_lease(
    store: SqliteStore, sql: sqlite3.Connection, host: Host, jumped: int
) -> None:
    frozen = await Owner.of(store, lease=LEASE)
    await store.lanes.renew(frozen.relay, lease=LEASE)
    jump(sql, jumped)
    host.up += LEASE
    assert await leases(store) == [0.0]
    successor = await Owner.of(store, lease=LEASE)
    assert [owned.crashes for owned in successor.owned] == [1]
    assert await store.lanes.renew(frozen.relay, lease=LEASE) is None


async def test_a_jump_back_does_not_prolong_the_lease_of_a_crashed_relay(
    store: SqliteStore, sql: sqlite3.Connection, host: Host
) -> None:
    await Owner.of(store, lease=LEASE)
    jump(sql, -HOUR)
    host.up += LEASE - 1
    successor = await Owner.of(store, lease=LEASE)
    assert successor.owned == []
    host.up += 1
    assert len(await successor.acquire(1)) == 1


@pytest.mark.parametrize("jumped", [HOUR, -HOUR])
async def test_a_crashed_relay_is_replaced_at_once(
    store: SqliteStore, path: Path, sql: sqlite3.Connection, host: Host, jumped: int
) -> None:
    heartbeat = SqliteStore(path, clock=host)
    dead = await Owner.of(store, lease=LEASE)
    await heartbeat.lanes.renew(dead.relay, lease=LEASE)
    jump(sql, jumped)
    successor = await Owner.of(store, lease=LEASE)
    await heartbeat.aclose()
    assert await store.lanes.expire(await store.lanes.ended(successor.relay)) == 1
    assert len(await successor.acquire(1)) == 1


@pytest.mark.parametrize("up", [0.0, 60.0, UPTIME - LEASE])
async def test_leases_end_with_a_restart_of_the_host(store: SqliteStore, host: Host, up: float) -> None:
    await Owner.of(store, lease=LEASE)
    host.up += 1
    last = await Owner.of(store, lease=LEASE)
    assert last.owned == []
    host.up = up
    assert await leases(store) == [0.0, 0.0]
    assert len((await Owner.of(store, lease=LEASE)).owned) == 1


async def test_a_lease_from_before_a_restart_ends_after_its_duration(store: SqliteStore, host: Host) -> None:
    await Owner.of(store, lease=LEASE)
    successor = await Owner.of(store, lease=LEASE)
    assert successor.owned == []
    # The host had been up for as long when its relays started.
    host.up += LEASE
    await store.lanes.renew(successor.relay, lease=LEASE)
    assert len(await successor.acquire(1)) == 1


async def test_a_relay_of_an_older_version_keeps_its_lanes_until_its_lease_ends(
    store: SqliteStore, sql: sqlite3.Connection
) -> None:
    relay = "older"
    await store.lanes.join(RelayRegistration(id=relay), lease=LEASE)
    assert len(await store.lanes.acquire(relay, limit=1)) == 1
    sql.execute("UPDATE outbox_relay SET lease_length = NULL, lease_end = NULL")
    successor = await Owner.of(store, lease=LEASE)
    assert successor.owned == []
    sql.execute("UPDATE outbox_relay SET lease_until = '2000-01-01T00:00:00.000Z' WHERE id = ?", (relay,))
    assert len(await successor.acquire(1)) == 1


async def test_the_heartbeat_uses_the_same_clock(store: SqliteStore, host: Host) -> None:
    owner = await Owner.of(store, lease=LEASE)
    beside = store.clone()
    host.up += LEASE - 1
    await beside.lanes.renew(owner.relay, lease=LEASE)
    assert await leases(store) == [LEASE]
    await beside.aclose()
