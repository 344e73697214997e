"""Faults that a guard of the relay protects from: a complete relay passes, a mutant does not.

Every scenario asserts that its fault occurred; otherwise the run is void. The caller checks the findings.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

from pillarbox.ops.drill.checker import Findings
from tests.faults import receiving
from tests.faults.relays import LEASE, SHORT_LEASE
from tests.faults.stage import Stage
from tests.servers.rabbitmq import RabbitMQServer

UNREACHABLE = "amqp://guest:guest@127.0.0.1:1/"
"""A broker that is unavailable: no server listens on the first port."""
BOUND = """
[transports.rabbit]
url = "{url}"
exchanges = [{{ name = "{name}" }}]

[[transports.rabbit.queues]]
name = "{name}"
bindings = [{{ exchange = "{name}", routing_key = "events" }}]

[destinations.{name}]
transport = "rabbit"
exchange = "{name}"
routing_key = "events"

[[routes]]
to = ["{name}"]
"""
"""Settings for a queue behind an exchange of the same name."""
FENCED = "another relay owns"
"""What a relay logs when it settled in a lane that it no longer owns."""


def wait_for_outage(stage: Stage, *, probes: int) -> None:
    """Wait until the breaker is open and that many probes have failed, or until no event is pending.

    The first failure and each failed probe set another time for the next one.
    """
    times: set[str] = set()

    def noticed() -> bool:
        times.update(stage.ids("SELECT next_attempt_at FROM outbox_destination WHERE last_error > ''"))
        return (len(times) > probes and "open" in stage.breakers()) or stage.waiting() == 0

    stage.wait_until(noticed, what=f"the breaker is open and {probes} probes failed")


def unbind_the_queue(stage: Stage, *, events: int) -> Findings:
    """A queue is unbound from its exchange while messages for it are in flight."""
    settings = stage.folder / "bound.toml"
    settings.write_text(BOUND.format(name=stage.event_type, url=stage.transport))
    relay = stage.start({"CONFIG": str(settings), "TRANSPORT": ""})
    with stage.under_load():
        stage.freeze_unsettled(relay)
        receiving.unbind(stage.transport, stage.event_type)
        relay.thaw()
    stage.write(events)
    stage.wait_drained()
    return stage.check()


def kill_a_silent_broker(stage: Stage, broker: RabbitMQServer, *, events: int) -> Findings:
    """A broker stops responding and is then killed: what was sent meanwhile is lost."""
    relay = stage.start({"RELAY__LEASE": "11s", "RELAY__SEND_TIMEOUT": "9s"})
    stage.write(events)
    stage.wait_drained()
    # A node that is killed moments after it declared a quorum queue may lose the queue.
    broker.restart()
    stage.write(events)
    stage.wait_drained()
    os.kill(broker.pid, signal.SIGSTOP)
    stage.write(events)
    in_flight = "SELECT sum(jsonb_array_length(in_flight)) FROM outbox_relay"
    stage.wait_until(
        lambda: stage.number(in_flight) > 0 or stage.waiting() == 0, what=f"{relay.name} waits for answers"
    )
    broker.kill()
    wait_for_outage(stage, probes=1)
    broker.start()
    stage.wait_drained()
    return stage.check()


def resume_after_its_lease(stage: Stage, *, events: int, leases: int, successor_works: bool) -> Findings:
    """A relay freezes until another one owns its lanes, and then settles what it had sent.

    The rows are unchanged because its successor cannot send; the lanes return to it because its successor cannot work.
    """
    stale_relay = stage.start()
    with stage.under_load():
        stage.freeze_unsettled(stale_relay)
    [(frozen_at,)] = stage.query(f"SELECT {stage.database.now}")
    if not successor_works:
        # Otherwise the successor would send the same events first and note that, and the settlement would miss the row.
        stage.pause()
    successor = stage.start({} if successor_works else {"TRANSPORT": UNREACHABLE})
    stage.wait_until(lambda: stage.lanes_of(successor) == 64, what="the successor has every lane")
    assert not stage.lives(stale_relay)
    stage.wait_until(lambda: stage.is_past(frozen_at, leases * LEASE), what=f"{leases} leases went by")
    stage.write(events)
    with stage.database.relays_locked():
        # No heartbeat reports it before it has settled.
        stale_relay.thaw()
        stage.wait_until(lambda: stale_relay.said(FENCED) or stage.stale() != [], what="it settles what it had sent")
    stage.resume()
    stage.wait_until(lambda: stage.lanes_of(stale_relay) >= 32, what="it joins anew and gets its share")
    stage.wait_drained()
    return stage.check()


def delay_a_settlement(stage: Stage, *, events: int) -> Findings:
    """A settlement waits for a lock of another session while its relay is frozen and its lease ends."""
    stage.write(events)
    database = stage.database
    with database.messages_locked():
        stale_relay = stage.start(SHORT_LEASE)
        stage.wait_until(database.settlement_waits, what="its settlement waits for the lock")
        stale_relay.freeze()
        stage.start(wait=False)
        stage.wait_until(lambda: not stage.lives(stale_relay), what="another relay expires it")
        assert database.settlement_waits(), "the settlement did not wait"
    # On MariaDB its transaction is still open, and holds its lanes until it continues.
    stale_relay.thaw()
    stage.wait_drained()
    stage.wait_until(lambda: stage.lanes_of(stale_relay) == 32, what="it joins anew and gets its share")
    return stage.check()


def refuse_now_and_then(stage: Stage, notes: Path, *, events: int) -> Findings:
    """A handler rejects one event in eight on its first delivery."""
    stage.write(events)
    stage.start()
    stage.wait_drained()
    assert stage.counted() > 0, "nothing was refused"
    stage.stop_all()
    return stage.check_against(notes.read_text().split())
