"""What a relay uses while a server is unavailable, and that it gives everything back afterwards."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from tests.extremes.linked import QUICK, Linked
from tests.extremes.links import Condition, FaultyProxy
from tests.extremes.relays import MAX_IN_FLIGHT, RelayProcess
from tests.servers.waiting import wait_until

EVENTS = 200
MEASURED = 20.0
"""Seconds of an outage whose CPU time is measured."""
MOST_CPU = 0.05
"""Of one core. A busy machine lets the measured time pass, and adds nothing to the CPU time of the relay."""
CYCLES = 6
LATER = 4
"""Connections that a relay opens only when it needs them may be missing at first: up to 5 to its database. What each
outage of one kind leaves behind exceeds this after all cycles."""

Outage = Callable[[FaultyProxy], AbstractContextManager[None]]


def down(link: FaultyProxy) -> AbstractContextManager[None]:
    return link.down()


def hole(link: FaultyProxy) -> AbstractContextManager[None]:
    return link.condition(Condition(hole="both"))


def wait_noticed(linked: Linked, relay: RelayProcess, warnings: int) -> None:
    linked.scene.wait_until(lambda: warned(relay) > warnings, what="the relay notices the outage")


def warned(relay: RelayProcess) -> int:
    return relay.story().count(" WARNING ")


@pytest.mark.parametrize("outage", [down, hole])
def test_a_relay_is_idle_during_an_outage(linked: Linked, outage: Outage) -> None:
    scene = linked.scene
    relay = scene.start(QUICK)
    scene.write(EVENTS)
    scene.wait_drained()
    before = warned(relay)
    with outage(linked.link):
        scene.write(EVENTS)
        wait_noticed(linked, relay, before)
        since, used = time.monotonic(), relay.cpu_seconds()
        wait_until(lambda: time.monotonic() - since >= MEASURED, bound=10 * MEASURED, what="the time has passed")
        used = (relay.cpu_seconds() - used) / (time.monotonic() - since)
        assert scene.pending() > 0
    print(f"CPU of the relay during the outage: {100 * used:.2f} % of a core")
    scene.wait_drained()
    assert used < MOST_CPU, relay.story()[-4000:]
    scene.stop()
    scene.assert_sound(linked.receive(), duplicates=MAX_IN_FLIGHT)


def test_connections_descriptors_and_threads_are_given_back_after_outages(linked: Linked) -> None:
    scene, link = linked.scene, linked.link
    relay = scene.start(QUICK)

    def used() -> tuple[int, int, int]:
        return link.connections, relay.descriptors(), relay.threads()

    def suffer() -> None:
        for outage in (down, hole):
            before = warned(relay)
            with outage(link):
                scene.write(EVENTS)
                wait_noticed(linked, relay, before)
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
    scene.wait_until(
        lambda: all(now <= before + LATER for now, before in zip(used(), baseline, strict=True)),
        what=f"the relay uses at most {LATER} connections, descriptors and threads more than {baseline}: {used()}",
    )
    print(f"connections, descriptors, threads: {baseline} before, {used()} after")
    scene.stop()
    scene.assert_sound(linked.receive(), duplicates=3 * (CYCLES + 1) * MAX_IN_FLIGHT)
