"""Checks a simulated run from what the writers committed, what operators did, and what arrived.

It reads no state of a relay and no counter; of its observations it uses lost leases, each of which allows duplicates,
and counted attempts. Each violation begins with the guarantee: lost, phantom, order, duplicates,
attempts, lease, discarded, edited, liveness.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import TYPE_CHECKING

from pillarbox.core.clock import seconds
from pillarbox.core.message import Message
from pillarbox.core.observations import EventRetried, LeaseLost
from pillarbox.testing.lookup import dead_letters
from tests.simulation.hosts import Identity, identity
from tests.simulation.plan import CONFIG, EDITED

if TYPE_CHECKING:
    from tests.simulation.world import World

BEYOND_THE_LEASE = 15.0
"""The bound of guarantee 8: after the faults, the first pending event of a key is delivered within the lease and these
seconds, plus the time of sends and, in quarantine, of the calls to the store around each of them.
"""
CALLS_PER_SEND = 4
"""Calls of a relay in quarantine, as guarantee 8 says: two fetches, the attempt, the settlement."""
LIVENESS_LIMIT = 900.0


async def until_delivered(world: World) -> None:
    """Wait until nothing is pending. The first pending event of each key may take no longer than the bound."""
    clock, plan = world.simulation.clock, world.plan
    # A relay in quarantine sends one message at a time: all messages that it may have in flight are sent first.
    quarantined = 0 if world.faults < 2 else CONFIG.max_in_flight
    call = 2 * plan.store_latency  # There and back.
    sends = 2 * plan.latency + quarantined * (plan.latency + CALLS_PER_SEND * call)
    bound = seconds(CONFIG.lease) + BEYOND_THE_LEASE + sends
    first_since: dict[tuple[str, str], tuple[int, float]] = {}
    began = clock.monotonic()
    while world.store._tables.waiting:
        now = clock.monotonic()
        firsts = _firsts(world)
        first_since = {
            queue: (first, first_since[queue][1] if first_since.get(queue, (0, 0))[0] == first else now)
            for queue, first in firsts.items()
        }
        for queue, (first, since) in first_since.items():
            if now - since > bound:
                world.violations.append(f"liveness: {queue} did not move for {now - since:.1f} s (event {first})")
        if now - began > LIVENESS_LIMIT or any(one.startswith("liveness") for one in world.violations):
            world.violations.append(f"lost: still pending: {_some(world.store._tables.waiting)}")
            return
        await clock.sleep(0.5)


def _firsts(world: World) -> dict[Identity, int]:
    """Return the first due message of each key and destination: key and destination → its sequence."""
    queues: dict[str, list[Message]] = defaultdict(list)
    for stored in world.store._tables.waiting.values():
        m = stored.message
        if m.available_at is None or m.available_at <= world.simulation.clock.now():
            queues[m.key or m.event_id].append(m)
    return {
        (key, m.destination): m.id
        for key, queue in queues.items()
        for m in queue
        # A message without a destination counts for all destinations.
        if not any(o.id < m.id and (o.destination in (m.destination, "") or not m.destination) for o in queue)
    }


def _some(identities: Collection[Identity]) -> str:
    return f"{len(identities)}, such as {sorted(identities)[:5]}"


async def check(world: World) -> None:
    """Raise AssertionError with every violation."""
    names, found = world.names, world.violations
    dead = _for_all(world, {(one.event_id, one.destination) for one in await dead_letters(world.store, limit=10_000)})
    dropped = _for_all(world, set(world.discarded))
    wanted = {(event_id, name) for ids in world.committed.values() for event_id in ids for name in names}
    everything = [identity(one) for one in world.deliveries]
    arrived = set(everything)
    if lost := wanted - arrived - dead - dropped:
        found.append(f"lost: {_some(lost)}")
    if phantoms := arrived - wanted:
        found.append(f"phantom: {sorted(phantoms)}")
    for key, ids in world.committed.items():
        for name in names:
            _check_order(world, key, ids, name, everything)
    lost_leases = sum(isinstance(one, LeaseLost) for one in world.observed)
    allowed = (world.faults + lost_leases) * CONFIG.max_in_flight * len(names) + len(world.edited) * len(names)
    if len(everything) - len(arrived) > allowed:
        found.append(f"duplicates: {len(everything) - len(arrived)} of at most {allowed}")
    # Pipelined, the last message of a batch may be the only one without a result twice: then it counts an attempt.
    if (
        world.plan.rejected == 0
        and not world.plan.pipelined
        and any(isinstance(one, EventRetried) and one.counted for one in world.observed)
    ):
        found.append("attempts: an outage was counted as an attempt")
    edits = {identity(one) for one in world.deliveries if one.body == EDITED}
    if unsent := _for_all(world, world.edited) - edits - dead - dropped:
        found.append(f"edited: never sent: {sorted(unsent)}")
    plan = world.plan
    if not (plan.kills or plan.freezes or plan.partitions or plan.expiries):
        for which, before in world.discarded.items():
            if before >= 0 and _for_all(world, {which}) & set(everything[before:]):
                found.append(f"discarded: {which} arrived after a relay said that it was discarded")
    assert not found, "\n".join(found)


def _for_all(world: World, identities: set[Identity]) -> set[Identity]:
    """The identities with a destination each: an event without one stands for all destinations."""
    return {(event_id, name) for event_id, at in identities for name in ([at] if at else world.names)}


def _check_order(world: World, key: str, ids: list[str], name: str, everything: list[Identity]) -> None:
    """Fail if the first deliveries of a key at a destination are not in commit order."""
    first = list(
        dict.fromkeys(
            event_id
            for event_id, destination in everything
            if destination == name and event_id.startswith(f"{key}/") and event_id not in world.moved
        )
    )
    arrived = {event_id: place for place, event_id in enumerate(first)}
    expected = [event_id for event_id in ids if event_id in arrived]
    if first == expected:
        return
    for at, earlier in enumerate(expected):
        for later in expected[at + 1 :]:
            if arrived[later] < arrived[earlier] and ((earlier, name), (later, name)) not in world.excused:
                world.violations.append(f"order: {key} at {name}: {later} arrived before {earlier}")
                return
