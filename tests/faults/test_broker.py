"""A broker is stopped, killed, out of memory, or loses a binding: events wait, no attempt is counted, none is lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.faults.relays import IN_HAND
from tests.faults.scenarios import kill_a_silent_broker, unbind_the_queue, wait_for_outage
from tests.faults.stage import Stage, assert_sound
from tests.servers.rabbitmq import RabbitMQServer

EVENTS = 2_000


@contextmanager
def low_on_memory(broker: RabbitMQServer) -> Iterator[None]:
    broker.ctl("set_vm_memory_high_watermark", "0.0000001")
    try:
        yield
    finally:
        broker.ctl("set_vm_memory_high_watermark", "0.4")


def assert_waited_for(stage: Stage, *, because: str) -> None:
    """Check that sends failed for this reason, and that no attempt was counted."""
    assert stage.tried_in_vain() > 0
    assert stage.counted() == 0
    assert any(relay.said(because) for relay in stage.relays)


def test_a_stopped_broker_burns_no_attempts(tormented: Stage, victim: RabbitMQServer) -> None:
    relay = tormented.start()
    with tormented.under_load():
        tormented.freeze_unsettled(relay)
    tormented.write(EVENTS)
    victim.stop()
    relay.thaw()
    wait_for_outage(tormented, probes=3)
    assert tormented.waiting() > 0
    victim.start()
    tormented.wait_drained()
    assert_waited_for(tormented, because="cannot connect to RabbitMQ")
    assert_sound(tormented.judge(), duplicates=range(IN_HAND + 1))


def test_a_killed_broker_burns_no_attempts(tormented: Stage, victim: RabbitMQServer) -> None:
    findings = kill_a_silent_broker(tormented, victim, events=EVENTS)
    assert_waited_for(tormented, because="lost the connection to RabbitMQ")
    assert_sound(findings, duplicates=range(IN_HAND + 1))


def test_a_memory_alarm_is_waited_for(tormented: Stage, victim: RabbitMQServer) -> None:
    relay = tormented.start()
    with tormented.under_load():
        tormented.freeze_unsettled(relay)
    tormented.write(EVENTS)
    with low_on_memory(victim):
        relay.thaw()
        wait_for_outage(tormented, probes=1)
        assert tormented.waiting() > 0
    tormented.wait_drained()
    assert_waited_for(tormented, because="is blocked (low on memory)")
    assert_sound(tormented.judge(), duplicates=range(IN_HAND + 1))


def test_a_queue_unbound_under_load_loses_nothing(stage: Stage) -> None:
    findings = unbind_the_queue(stage, events=EVENTS)
    returned = "SELECT count(*) FROM outbox_attempt WHERE counted AND error LIKE '%%no queue is bound%%'"
    assert stage.number(returned) > 0
    assert_sound(findings, duplicates=range(1))
