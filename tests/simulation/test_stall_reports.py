"""A stall shows in the log, the metrics, the readiness probe and the doctor."""

from __future__ import annotations

import asyncio
import logging

import pytest

from pillarbox import Event
from pillarbox.core.observations import (
    RelayStalled,
)
from pillarbox.ops.doctor import symptoms
from pillarbox.ops.monitor.checks import ready
from pillarbox.ops.monitor.snapshot import StoreSnapshot
from pillarbox.ops.settings import Settings
from pillarbox.relay.relay import Relay
from pillarbox.telemetry.logs import RelayLog
from pillarbox.telemetry.prometheus import RelayMetrics
from tests.simulation.stage import Stage
from tests.simulation.stalls import BOUND, SOON, Fault, ledger_hangs, run_scenario, settle_fails, take_fails
from tests.unit.telemetry.exposed import value


@pytest.mark.parametrize("fault", [settle_fails, take_fails, ledger_hangs])
def test_a_stall_shows_in_the_log_the_metrics_the_readiness_and_the_doctor(
    caplog: pytest.LogCaptureFixture, fault: Fault
) -> None:
    async def doctor(stage: Stage) -> str:
        [check] = [one for one in symptoms.checks(Settings.load(None, {}), stage.store) if "relays" in one.name]
        return (await check.ask()).result

    async def readiness(stage: Stage, relay: Relay) -> bool:
        seen = StoreSnapshot(overview=await stage.store.admin.inspection.overview())
        return ready(seen, relay.waits_for, stalled=relay.stalled).yes

    async def scenario(stage: Stage) -> None:
        caplog.clear()
        over, metrics = asyncio.Event(), RelayMetrics()
        fault(stage, over)
        stage.record(Event("a", {}, event_id="1"))
        async with stage.running(observers=[stage.observed.append, metrics, RelayLog()]) as relay:
            for stalled in (False, True, False):
                if stalled:
                    await stage.until(lambda: bool(relay.stalled), within=BOUND + SOON)
                elif stage.seen(RelayStalled):
                    over.set()
                await stage.rest(4)
                assert value(metrics.registry, "outbox_relay_stalled") == float(stalled)
                assert await readiness(stage, relay) is not stalled
                assert await doctor(stage) == ("fail" if stalled else "pass")
        [wrong, right] = [one for one in caplog.records if "stalled" in one.message]
        assert (wrong.levelname, right.levelname) == ("ERROR", "INFO")

    with caplog.at_level(logging.INFO, logger="pillarbox.relay"):
        run_scenario(scenario)
