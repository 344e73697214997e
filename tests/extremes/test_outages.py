"""What a relay uses while a server is unavailable, and that it gives everything back afterwards."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.extremes.engines import ENGINES, Access, Sending
from tests.extremes.linked import QUICK
from tests.extremes.relays import MAX_IN_FLIGHT, RelayProcess
from tests.servers.waiting import wait_until

EVENTS = 200
MEASURED = 20.0
"""Seconds of an outage whose CPU time is measured."""
MOST_CPU = 0.05
"""Of one core. A busy machine lets the measured time pass, and adds nothing to the CPU time of the relay."""
CYCLES = 6
MEGABYTE = 1024**2
ROOM = {
    # Connections that a relay opens only when it needs them may be missing at first: up to 5 to its database. What
    # each outage of one kind leaves behind exceeds this after all cycles.
    "connections": 4,
    "descriptors": 4,
    "threads": 4,
    "tasks": 4,
    "objects": 500,
    "memory": 8 * MEGABYTE,
}

Outage = Callable[[Access], AbstractContextManager[None]]


def down(link: Access) -> AbstractContextManager[None]:
    return link.down()


def hole(link: Access) -> AbstractContextManager[None]:
    return link.hole()


def wait_noticed(sending: Sending, relay: RelayProcess, warnings: int) -> None:
    sending.scene.wait_until(lambda: relay.warnings() > warnings, what="the relay notices the outage")


@pytest.mark.parametrize("outage", [down, hole])
@pytest.mark.parametrize("sending", [one for one in ENGINES if one not in ("sqlite", "handlers")], indirect=True)
def test_a_relay_is_idle_during_an_outage(sending: Sending, outage: Outage) -> None:
    scene = sending.scene
    relay = scene.start(QUICK)
    scene.write(EVENTS)
    scene.wait_drained()
    before = relay.warnings()
    with outage(sending.link):
        scene.write(EVENTS)
        wait_noticed(sending, relay, before)
        since, used = time.monotonic(), relay.cpu_seconds()
        wait_until(lambda: time.monotonic() - since >= MEASURED, bound=10 * MEASURED, what="the time has passed")
        used = (relay.cpu_seconds() - used) / (time.monotonic() - since)
        assert scene.pending() > 0
    print(f"CPU of the relay during the outage: {100 * used:.2f} % of a core")
    scene.wait_drained()
    assert used < MOST_CPU, relay.story()[-4000:]
    scene.stop()
    scene.assert_sound(sending.received(), duplicates=MAX_IN_FLIGHT)


def test_everything_is_given_back_after_outages(sending: Sending, tmp_path: Path) -> None:
    scene, link = sending.scene, sending.link
    counts = tmp_path / "counts.json"
    relay = scene.start(QUICK, program=("tests.extremes.counted", str(counts)))

    def used() -> dict[str, int]:
        return {"connections": link.connections, **relay.resources(), **relay.counted(counts)}

    def suffer() -> None:
        for outage in link.outages:
            before = relay.warnings()
            if link.locks_writers:
                scene.write(EVENTS)
            with outage():
                if not link.locks_writers:
                    scene.write(EVENTS)
                wait_noticed(sending, relay, before)
            scene.wait_drained()
        scene.write(EVENTS)
        link.reset()
        scene.wait_drained()

    scene.write(EVENTS)
    scene.wait_drained()
    suffer()
    baseline = used()
    for _ in range(CYCLES):
        suffer()
    now: dict[str, int] = {}

    def is_given_back() -> bool:
        now.update(used())
        return all(now[name] <= baseline[name] + room for name, room in ROOM.items())

    try:
        scene.wait_until(is_given_back, what="the relay uses no more than before the outages")
    finally:
        print(f"before: {baseline}\nafter:  {now}")
    scene.stop()
    outages = (len(link.outages) + 1) * (CYCLES + 1)
    scene.assert_sound(sending.received(), duplicates=outages * MAX_IN_FLIGHT)
