"""Which losses of relays count as interruptions, and which of them a fault of the drill explains."""

from __future__ import annotations

from pathlib import Path

from pillarbox.core.observations import BreakerChanged, LeaseLost, TransportConnected, TransportFailed
from pillarbox.ops.drill.interruptions import Interruption, InterruptionLog, read_interruptions, unplanned
from pillarbox.ops.drill.schedule import ExecutedFault, FaultKind


def fault(kind: FaultKind, began: float, victim: str = "") -> ExecutedFault:
    return ExecutedFault(kind=kind, began=began, victim=victim)


def at(*pairs: tuple[float, str]) -> list[Interruption]:
    return [Interruption(*pair) for pair in pairs]


def test_one_outage_interrupts_a_relay_once_however_often_the_relay_retries(tmp_path: Path) -> None:
    assert read_interruptions(tmp_path) == []
    first, second = InterruptionLog(tmp_path, "relay-1"), InterruptionLog(tmp_path, "relay-2")
    failed = TransportFailed(relay="r", transport="rabbit", error="connection refused", delay=1.0)
    connected = TransportConnected(relay="r", transport="rabbit", seconds=1.0)
    opened, closed = (BreakerChanged(relay="r", destination="d", state=state) for state in ("open", "closed"))
    for observation in (opened, failed, failed, opened, connected, opened, closed):
        first.observe(observation)
    assert [one.relay for one in read_interruptions(tmp_path)] == ["relay-1"]
    first.observe(failed)
    second.observe(failed)
    assert [one.relay for one in read_interruptions(tmp_path)] == ["relay-1", "relay-1", "relay-2"]


def test_every_lost_lease_is_an_interruption(tmp_path: Path) -> None:
    log = InterruptionLog(tmp_path, "relay-1")
    for _ in range(2):
        log.observe(LeaseLost(relay="r", reason="expired"))
    assert len(read_interruptions(tmp_path)) == 2


def test_outages_explain_the_interruptions_of_all_relays_and_crashes_those_of_their_victim() -> None:
    faults = [fault("cut-broker", 10.0), fault("freeze", 20.0, "relay-1"), fault("drain", 30.0, "relay-1")]
    early, late = at((9.0, "relay-1")), at((31.0, "relay-1"), (31.5, "relay-1"))
    during = at((11.0, "relay-1"), (12.0, "relay-2"), (21.0, "relay-1"), (22.0, "relay-2"))
    assert unplanned(early + during + late, faults) == [*early, (22.0, "relay-2"), *late]


def test_each_relay_counts_once_while_messages_cannot_be_routed() -> None:
    faults = [fault("unroutable", 1.0), fault("unroutable", 5.0)]
    interruptions = at((2.0, "relay-1"), (3.0, "relay-1"), (3.5, "relay-2"), (6.0, "relay-1"))
    assert unplanned(interruptions, faults) == at((2.0, "relay-1"), (3.5, "relay-2"), (6.0, "relay-1"))
