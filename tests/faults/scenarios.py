"""Faults that a guard of the relay protects from: a complete relay passes, a mutant does not.

Every scenario asserts that its fault occurred; otherwise the run is void. The caller checks the findings.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path

from pillarbox import Event, Outbox
from pillarbox.failpoints import POINTS
from pillarbox.ops.drill.checker import Findings
from tests.faults import handling, receiving
from tests.faults.program import LATE_SETTLEMENT
from tests.faults.relays import LEASE, MAX_IN_FLIGHT, SHORT_LEASE, RelayProcess
from tests.faults.stage import TIMES, Stage
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
AT_RANDOM = "at random"
CRASHES = (*POINTS, AT_RANDOM)
WHEN_LEAVING = {"before-drain", "after-drain"}
ONCE = {"before-release", "after-release"} | WHEN_LEAVING
"""Points that a relay reaches when others join, or when it leaves."""
SENT_AND_NOT_SETTLED = {AT_RANDOM, "after-confirm", "before-settle"}
"""Points after which a crash causes duplicates."""
SHARE_OF_FOUR = 16
TWICE = "SELECT count(*) FROM outbox_message WHERE attempts > 1"


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
    stage.wait_until(lambda: stage.lanes_of(successor) == stage.lanes, what="the successor has every lane")
    assert not stage.lives(stale_relay)
    stage.wait_until(lambda: stage.is_past(frozen_at, leases * LEASE), what=f"{leases} leases went by")
    stage.write(events)
    with stage.database.relays_locked():
        # No heartbeat reports it before it has settled.
        stale_relay.thaw()
        stage.wait_until(lambda: stale_relay.said(LATE_SETTLEMENT), what="it settles what it had sent")
    stage.resume()
    if stage.lanes == 1:
        stage.wait_until(lambda: stage.lives(stale_relay), what="it joins anew")
        successor.terminate()
        assert successor.wait() == 0
    share = (stage.lanes + 1) // 2
    stage.wait_until(lambda: stage.lanes_of(stale_relay) >= share, what="it joins anew and gets its share")
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


def kill_relays(stage: Stage, points: Sequence[str], *, events: int, relays: int = 3) -> Findings:
    """Kill one of several relays at each of these points under load. SQLite has one lane, so that one relay works."""
    running = [stage.start() for _ in range(relays)]
    # A relay with the only lane keeps it when others join.
    when_leaving = WHEN_LEAVING if stage.lanes > 1 else ONCE
    with stage.under_load():
        for _ in range(TIMES):
            for crash in points:
                # An event is dead-lettered after three crashes of its relays: settle those first that have two.
                stage.wait_until(lambda: stage.number(TWICE) == 0, what="no event has been hit twice")
                victim = running.pop(stage.rng.randrange(relays))
                target = victim if crash == AT_RANDOM else replaced(stage, victim, crash)
                running.append(stage.start())
                if crash == AT_RANDOM or crash in when_leaving:
                    stage.freeze_unsettled(target)
                    target.kill() if crash == AT_RANDOM else target.terminate()
                    target.thaw()
                assert target.wait() == -9
        stage.wait_until(lambda: stage.ledger.count >= events * TIMES, what="enough was written")
    stage.wait_drained()
    return stage.check()


def replaced(stage: Stage, relay: RelayProcess, point: str) -> RelayProcess:
    """Start another relay in its place, which crashes at that point."""
    relay.terminate()
    assert relay.wait() == 0
    count = 1 if point in ONCE else stage.rng.randint(1, 5)
    target = stage.start({"FAILPOINT": f"{point}:{count}"}, wait=False)
    if point in ONCE or stage.lanes == 1:
        share = min(SHARE_OF_FOUR, stage.lanes - 1)
        # The lease of a relay killed before may end meanwhile, and its lanes may be free already.
        stage.wait_until(
            lambda: not target.running or stage.lanes_of(target) > share, what=f"{target.name} has its share"
        )
    return target


def duplicates_after(points: Sequence[str], *, deduplicated: bool = False) -> range:
    """How many duplicates relays cause that were killed at these points."""
    least = 0 if deduplicated else sum(point in SENT_AND_NOT_SETTLED for point in points) * TIMES
    return range(least, len(points) * TIMES * MAX_IN_FLIGHT + 1)


def change_the_number(stage: Stage) -> Findings:
    """From one relay to four to two; each works."""
    fleet = [stage.start()]
    with stage.under_load():
        fleet += [stage.start() for _ in range(3)]
        stage.wait_until(lambda: all(stage.lanes_of(relay) == 16 for relay in fleet), what="each has its share")
        for relay in fleet[:2]:
            leave(stage, relay)
        stage.wait_until(lambda: all(stage.lanes_of(relay) == 32 for relay in fleet[2:]), what="two share the lanes")
    return settled(stage)


def restart_one_by_one(stage: Stage) -> Findings:
    """A rolling restart of three relays; each works."""
    fleet = [stage.start() for _ in range(3)]
    with stage.under_load():
        for old in fleet:
            stage.start()
            leave(stage, old)
        stage.wait_until(lambda: all(relay.said("delivered event") for relay in stage.relays), what="all have worked")
    return settled(stage)


def leave(stage: Stage, relay: RelayProcess) -> None:
    """Let it drain with confirmed and unsettled messages."""
    stage.freeze_unsettled(relay)
    relay.terminate()
    relay.thaw()
    assert relay.wait() == 0


def settled(stage: Stage) -> Findings:
    """Each relay has worked, and a change of owner counts no attempt."""
    stage.wait_drained()
    assert all(relay.said("delivered event") for relay in stage.relays)
    assert stage.counted() == 0
    return stage.check()


def record(stage: Stage, what: str, key: str) -> str:
    """Record an event that says what its handler does; return its id."""
    with stage.database.writer() as writer, writer.transaction(rolled_back=False):
        [event_id] = Outbox().record(writer.connection, Event(stage.event_type, {"what": what}, key=key))
    stage.ledger.commit([(key, event_id)])
    return event_id


def pending(stage: Stage) -> set[str]:
    return set(stage.ids("SELECT event_id FROM outbox_message"))


def always_fail(stage: Stage, *, events: int) -> tuple[Findings, list[str]]:
    """A handler always fails with one event. Returns the dead letters, too."""
    poison, *later = (record(stage, what, "poisoned") for what in ("fail", "", ""))
    relay = stage.start()
    stage.write(events)
    attempts = "SELECT attempts FROM outbox_message WHERE event_id = %s"
    stage.wait_until(
        lambda: pending(stage) == {poison, *later} and stage.number(attempts, poison) > 2,
        what="every event of another key is handled, and the poison is retried",
    )
    relay.terminate()
    assert relay.wait() == 0
    stage.start({"RELAY__RETRY__MAX_ATTEMPTS": "3"})
    stage.wait_drained()
    return finished(stage)


def kill_the_process(stage: Stage, *, events: int) -> tuple[Findings, list[str], int]:
    """A handler kills its process with one event. Returns the dead letters and the number of crashes, too."""
    record(stage, "kill", "poisoned")
    stage.write(events)
    crashes = 0
    relay = stage.start(SHORT_LEASE, wait=False)

    def is_drained() -> bool:
        nonlocal relay, crashes
        if not relay.running:
            assert relay.wait() == -9
            crashes += 1
            relay = stage.start(SHORT_LEASE, wait=False)
        return stage.waiting() == 0

    stage.wait_until(is_drained, what="every other event is handled, and the poison is dead-lettered", bound=120)
    return *finished(stage), crashes


def hang(stage: Stage, *, events: int) -> Findings:
    """A handler hangs with one event for longer than a lease; meanwhile all events of other keys are handled."""
    relay = stage.start()
    stage.wait_until(lambda: stage.lanes_of(relay) == stage.lanes, what=f"{relay.name} has every lane")
    owners = ownership(stage)
    stuck = {record(stage, what, "hanging") for what in ("hang", "", "")}
    stage.wait_until((stage.folder / handling.BLOCKING).exists, what="a handler hangs")
    [(since,)] = stage.query(f"SELECT {stage.database.now}")
    stage.write(events)
    stage.wait_until(lambda: pending(stage) == stuck, what="every event of another key is handled")
    return unblocked(stage, since, owners)


def block_the_event_loop(stage: Stage, *, events: int) -> Findings:
    """A handler blocks the event loop of one of two relays for longer than a lease; the other one works."""
    relays = [stage.start(), stage.start()]
    stage.wait_until(
        lambda: sorted(map(stage.lanes_of, relays)) == [stage.lanes // 2, (stage.lanes + 1) // 2],
        what="both have their share",
    )
    owners = ownership(stage)
    blocking = record(stage, "block", "blocking")
    stage.wait_until((stage.folder / handling.BLOCKING).exists, what="an event loop is blocked")
    [(since,)] = stage.query(f"SELECT {stage.database.now}")
    [blocked] = [relay for relay in relays if blocking in stage.waiting_for(relay)]
    [other] = [relay for relay in relays if relay is not blocked]
    stage.write(events)
    stage.wait_until(lambda: stage.waiting_for(other) == [], what="the other relay's keys are served")
    assert blocking in stage.waiting_for(blocked)
    return unblocked(stage, since, owners)


def ownership(stage: Stage) -> Sequence[tuple[object, ...]]:
    """Owner and epoch of every lane: both change if another relay takes a lane."""
    return stage.query("SELECT lane, epoch, owner FROM outbox_lane ORDER BY lane")


def unblocked(stage: Stage, since: object, owners: Sequence[tuple[object, ...]]) -> Findings:
    """Let a handler return after a lease: no lane has changed its owner, and no attempt is counted."""
    stage.wait_until(lambda: stage.is_past(since, LEASE + 2), what="the handler ran longer than a lease")
    (stage.folder / handling.ENOUGH).touch()
    stage.wait_drained()
    assert ownership(stage) == owners
    assert stage.counted() == 0
    return stage.check()


def finished(stage: Stage) -> tuple[Findings, list[str]]:
    stage.stop_all()
    dead = stage.ids("SELECT event_id FROM outbox_dead_letter")
    return stage.check_against(stage.received(), dead=dead), dead
