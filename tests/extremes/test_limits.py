"""Low limits on files and memory: the relay works, or fails with a clear error and continues after a restart."""

from __future__ import annotations

import random
import signal
from collections.abc import Mapping
from contextlib import suppress
from functools import partial

import pytest

from tests.extremes.conftest import MakeScene
from tests.extremes.engines import TRANSPORTS, Sending
from tests.extremes.linked import QUICK
from tests.extremes.receiving import from_queue
from tests.extremes.relays import MAX_IN_FLIGHT, RelayProcess
from tests.extremes.scene import Scene
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.waiting import wait_until

EVENTS = 1_000
NO_FILES = "Too many open files"
NO_MEMORY = ("MemoryError", "can't start new thread")
TO_END = 10.0
"""Seconds for a relay without memory to end by itself."""
BY_DRIVERS = {-signal.SIGABRT, -signal.SIGSEGV}
"""Exit codes of a process in which a driver in C gets no memory: librdkafka and hiredis do not report it."""
BACKLOG = 100
LARGE = 500_000
"""Bytes that are recorded as twice as many characters."""
MEGABYTE = 1024**2
LIMITS = (f"--data={60 * MEGABYTE}", f"--data={75 * MEGABYTE}", f"--as={100 * MEGABYTE}")
THREADED = (f"--data={90 * MEGABYTE}", f"--data={120 * MEGABYTE}")
"""The threads of librdkafka need more."""
WINDOW = 16 * MEGABYTE
COPIES = 3
"""Copies of an event in flight, as `docs/how-to/tuning.md` says."""


def large() -> dict[str, str]:
    """The mock cluster of Kafka keeps 5 MB: the payload is compressible, and the relay compresses it for Kafka."""
    return {"filler": random.randbytes(LARGE // 1000).hex() * 1000}


def test_a_relay_that_starts_with_few_files(
    make_scene: MakeScene, any_store: str, rabbitmq_server: RabbitMQServer
) -> None:
    scene = make_scene(store=any_store, transport=rabbitmq_server.url())
    too_few = scene.start(limits=["--nofile=10"], wait=False)
    scene.wait_until(lambda: too_few.said(NO_FILES), what="the relay reports the limit")
    # It may deliver some whenever a retry finds a free file.
    scene.write(EVENTS)
    too_few.end()
    scene.start(limits=["--nofile=64"])
    scene.wait_drained()
    scene.stop()
    assert scene.attempts() == 0
    scene.assert_sound(from_queue(rabbitmq_server.url(), scene.event_type), duplicates=MAX_IN_FLIGHT)


def test_a_relay_that_cannot_open_its_sqlite_file_continues_later(
    make_scene: MakeScene, sqlite_url: str, rabbitmq_server: RabbitMQServer
) -> None:
    scene = make_scene(store=sqlite_url, transport=rabbitmq_server.url())
    scene.write(EVENTS)
    relay = scene.start(limits=["--nofile=8:64"], wait=False)
    scene.wait_until(lambda: relay.said("limit on open files"), what="the relay reports the limit")
    assert scene.pending() == EVENTS
    relay.unlimit_descriptors()
    scene.wait_drained()
    assert relay.running
    scene.stop()
    assert scene.attempts() == 0
    scene.assert_sound(from_queue(rabbitmq_server.url(), scene.event_type))


@pytest.mark.parametrize("sending", ["postgres", "mariadb", *TRANSPORTS], indirect=True)
def test_a_relay_that_has_no_free_file_after_an_outage(sending: Sending) -> None:
    scene, link = sending.scene, sending.link
    relay = scene.start(QUICK, limits=["--nofile=64"])
    scene.write(EVENTS)
    scene.wait_drained()
    warnings = relay.warnings()
    with link.down():
        scene.write(EVENTS)
        scene.wait_until(lambda: relay.warnings() > warnings, what="the relay notices the outage")
        relay.limit_descriptors()
    scene.wait_until(lambda: relay.said(NO_FILES), what="the relay reports the limit")
    assert scene.pending() > 0
    relay.unlimit_descriptors()
    scene.wait_drained()
    assert relay.running
    scene.stop()
    # What a handler cannot open is its own failure.
    assert (scene.attempts() > 0) == (sending.engine == "handlers")
    scene.assert_sound(sending.received(), duplicates=MAX_IN_FLIGHT)


def is_over(scene: Scene, relay: RelayProcess) -> bool:
    return not relay.running or is_short(relay) or scene.pending() == 0


def is_short(relay: RelayProcess) -> bool:
    """Return whether it reports that it has too little memory."""
    return any(map(relay.said, NO_MEMORY))


def has_ended_or_works(relay: RelayProcess) -> bool:
    return not relay.running or not is_short(relay)


def test_relays_with_too_little_memory_lose_nothing_and_the_next_one_continues(
    sending: Sending, one_place: str
) -> None:
    """Each ends, or defers what it cannot send."""
    scene = sending.scene
    scene.write(BACKLOG, payload=large())
    codes: list[int] = []
    for limit in THREADED if sending.engine == "kafka" else LIMITS:
        relay = scene.start({"CONFIG": one_place}, limits=[limit], wait=False)
        scene.wait_until(partial(is_over, scene, relay), what=f"the relay with {limit} fails or delivers everything")
        with suppress(TimeoutError):  # one that defers instead does not end by itself
            wait_until(partial(has_ended_or_works, relay), bound=TO_END, what="it ends")
        relay.end()
        if relay.wait() in BY_DRIVERS or is_short(relay):
            codes.append(relay.wait())
    print(f"exit codes with too little memory: {codes}; {scene.pending()} events pending")
    assert codes, "the memory was not too little"
    scene.start({"CONFIG": one_place})
    scene.wait_drained()
    scene.stop()
    # The crash guard counts attempts of what may have crashed several relays without a word.
    assert scene.attempts() == 0 or not {*BY_DRIVERS, -signal.SIGKILL}.isdisjoint(codes)
    scene.assert_sound(sending.received(), duplicates=len(codes) * MAX_IN_FLIGHT)


def highest_memory(scene: Scene, payload: dict[str, str] | None, settings: Mapping[str, str]) -> int:
    """Return the most resident bytes of a relay that delivers a backlog."""
    scene.write(BACKLOG, payload=payload)
    relay = scene.start(settings)
    scene.wait_drained()
    highest = relay.peak_memory()
    scene.stop()
    return highest


def test_memory_stays_bounded_with_a_backlog_of_large_events(sending: Sending, one_place: str) -> None:
    scene = sending.scene
    settings = {"CONFIG": one_place, "RELAY__MAX_IN_FLIGHT_BYTES": f"{WINDOW // MEGABYTE} MiB"}
    before = highest_memory(scene, None, settings)
    highest = highest_memory(scene, large(), settings)
    print(f"{(highest - before) / MEGABYTE:.1f} MiB more for large events")
    assert highest - before <= COPIES * WINDOW < BACKLOG * 2 * LARGE
    scene.assert_sound(sending.received())
