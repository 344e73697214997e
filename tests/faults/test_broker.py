"""A broker is stopped, killed, out of memory, or loses a binding: events wait, no attempt is counted, none is lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from tests.faults.relays import MAX_IN_FLIGHT
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


@contextmanager
def low_on_disk(broker: RabbitMQServer) -> Iterator[None]:
    """The broker wants more free space than any disk has."""
    broker.ctl("set_disk_free_limit", "1000000000MB")
    try:
        yield
    finally:
        broker.ctl("set_disk_free_limit", "50MB")


def assert_waited_for(stage: Stage, *, because: str) -> None:
    """Check that sends failed for this reason, and that no attempt was counted."""
    assert stage.failed_sends() > 0
    assert stage.counted() == 0
    assert any(relay.said(because) for relay in stage.relays)


def test_a_stopped_broker_uses_up_no_attempts(stage_with_broker: Stage, victim: RabbitMQServer) -> None:
    relay = stage_with_broker.start()
    with stage_with_broker.under_load():
        stage_with_broker.freeze_unsettled(relay)
    stage_with_broker.write(EVENTS)
    victim.stop()
    relay.thaw()
    wait_for_outage(stage_with_broker, probes=3)
    assert stage_with_broker.waiting() > 0
    victim.start()
    stage_with_broker.wait_drained()
    assert_waited_for(stage_with_broker, because="cannot connect to RabbitMQ")
    assert_sound(stage_with_broker.check(), duplicates=range(MAX_IN_FLIGHT + 1))


def test_a_killed_broker_uses_up_no_attempts(stage_with_broker: Stage, victim: RabbitMQServer) -> None:
    findings = kill_a_silent_broker(stage_with_broker, victim, events=EVENTS)
    assert_waited_for(stage_with_broker, because="lost the connection to RabbitMQ")
    assert_sound(findings, duplicates=range(MAX_IN_FLIGHT + 1))


def test_the_relay_waits_out_a_memory_alarm(stage_with_broker: Stage, victim: RabbitMQServer) -> None:
    wait_out(stage_with_broker, low_on_memory(victim), because="is blocked (low on memory)")


def test_the_relay_waits_out_a_disk_alarm(stage_with_broker: Stage, victim: RabbitMQServer) -> None:
    wait_out(stage_with_broker, low_on_disk(victim), because="is blocked (low on disk)")


def wait_out(stage: Stage, alarm: AbstractContextManager[None], *, because: str) -> None:
    relay = stage.start()
    with stage.under_load():
        stage.freeze_unsettled(relay)
    stage.write(EVENTS)
    with alarm:
        relay.thaw()
        wait_for_outage(stage, probes=1)
        assert stage.waiting() > 0
    stage.wait_drained()
    assert_waited_for(stage, because=because)
    assert_sound(stage.check(), duplicates=range(MAX_IN_FLIGHT + 1))


def test_a_queue_unbound_under_load_loses_nothing(stage: Stage) -> None:
    findings = unbind_the_queue(stage, events=EVENTS)
    returned = "SELECT count(*) FROM outbox_attempt WHERE counted AND error LIKE '%%no queue is bound%%'"
    assert stage.number(returned) > 0
    assert_sound(findings, duplicates=range(1))
