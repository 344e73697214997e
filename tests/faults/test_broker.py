"""A broker that is stopped, killed, out of memory, or loses a queue: waited for, never charged, nothing lost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults import far_side
from tests.faults.relays import IN_HAND
from tests.faults.stage import Stage, assert_nothing_lost
from tests.servers.rabbitmq import RabbitMQServer

EVENTS = 2_000
PROBES = 3


def wait_for_failed_probes(stage: Stage, count: int) -> None:
    """Until the breaker is open and has been opened again by `count` probes: each sets another time for the next."""
    times: set[object] = set()

    def failed() -> bool:
        times.update(row[0] for row in stage.query("SELECT next_try_at FROM outbox_destination WHERE last_error > ''"))
        return len(times) > count and "open" in stage.breakers()

    stage.wait_until(failed, what=f"the breaker is open and {count} probes failed")


@pytest.fixture
def healed(victim: RabbitMQServer) -> Iterator[RabbitMQServer]:
    yield victim
    victim.ctl("set_vm_memory_high_watermark", "0.4")


def test_a_stopped_broker_burns_no_attempts(tormented: Stage, victim: RabbitMQServer) -> None:
    relay = tormented.start()
    tormented.write(EVENTS)
    tormented.freeze_at_work(relay)
    victim.stop()
    relay.thaw()
    wait_for_failed_probes(tormented, PROBES)
    assert tormented.number("SELECT max(retry_count) FROM outbox_event") > 0
    victim.start()
    tormented.wait_drained()
    assert tormented.charged() == 0
    assert_nothing_lost(tormented.judge(), most_duplicates=IN_HAND)


def test_a_killed_broker_burns_no_attempts(tormented: Stage, victim: RabbitMQServer) -> None:
    relay = tormented.start()
    tormented.write(100)
    tormented.wait_drained()
    # A node that is killed within moments of declaring a quorum queue may forget that it has it.
    victim.restart()
    tormented.write(EVENTS)
    tormented.wait_until(lambda: tormented.delivered() > 150 and tormented.at_work(relay), what="it is at work")
    victim.kill()
    tormented.write(EVENTS)
    wait_for_failed_probes(tormented, 1)
    victim.start()
    tormented.wait_drained()
    assert tormented.charged() == 0
    assert_nothing_lost(tormented.judge(), most_duplicates=IN_HAND)


def test_a_memory_alarm_is_waited_for(tormented: Stage, healed: RabbitMQServer) -> None:
    tormented.start()
    tormented.write(100)
    tormented.wait_drained()
    healed.ctl("set_vm_memory_high_watermark", "0.0000001")
    tormented.write(EVENTS)
    wait_for_failed_probes(tormented, 1)
    healed.ctl("set_vm_memory_high_watermark", "0.4")
    tormented.wait_drained()
    assert tormented.charged() == 0
    assert_nothing_lost(tormented.judge(), most_duplicates=IN_HAND)


def test_a_queue_deleted_under_load_loses_nothing(stage: Stage) -> None:
    relay = stage.start()
    stage.write(EVENTS)
    stage.wait_until(lambda: stage.delivered() > 0, what="the queue is in use")
    stage.freeze_at_work(relay)
    stage.collect()
    far_side.delete(stage.transport, stage.event_type)
    relay.thaw()
    stage.wait_drained()
    assert stage.charged() > 0, "nothing came back as unroutable"
    assert_nothing_lost(stage.judge(), most_duplicates=0)
