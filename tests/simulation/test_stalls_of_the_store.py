"""A relay whose store renews the lease but does not fetch, settle or acquire lanes reports a stall."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pillarbox import Event
from pillarbox.core.errors import RowsRefusedError
from pillarbox.core.observations import (
    BatchSettled,
    RelayStalled,
    RelayStallEnded,
)
from tests.simulation.stage import Stage, ids
from tests.simulation.stalls import (
    BOUND,
    SOON,
    Fault,
    fetch_fails,
    fetch_hangs,
    ledger_fails,
    ledger_hangs,
    requests_fail,
    run_scenario,
    settle_fails,
    settle_hangs,
    take_fails,
    take_hangs,
)


@pytest.mark.parametrize(
    ("stage_name", "fault"),
    [
        ("fetch", fetch_hangs),
        ("fetch", fetch_fails),
        ("settle", settle_hangs),
        ("settle", settle_fails),
        ("coordinate", take_hangs),
        ("coordinate", take_fails),
        ("ledger", ledger_hangs),
        ("ledger", ledger_fails),
    ],
)
def test_a_store_that_renews_the_lease_but_does_not_work_is_a_stall(stage_name: str, fault: Fault) -> None:
    async def scenario(stage: Stage) -> None:
        over = asyncio.Event()
        fault(stage, over)
        stage.record(Event("a", {}, event_id="1"))
        async with stage.running() as relay:
            await stage.rest(BOUND - 1)
            assert (stage.seen(RelayStalled), relay.stalled) == ([], "")
            await stage.until(lambda: bool(stage.seen(RelayStalled)), within=SOON)
            [stalled] = stage.seen(RelayStalled)
            assert (stalled.relay, stalled.stage, stalled.reason) == (relay.id, stage_name, relay.stalled)
            assert BOUND < stalled.seconds < BOUND + SOON
            await stage.rest(SOON)
            assert len(stage.seen(RelayStalled)) == 1, "it is reported once"
            over.set()
            await stage.until(lambda: not relay.stalled, within=SOON)
            [ended] = stage.seen(RelayStallEnded)
            assert (ended.stage, ended.seconds > stalled.seconds) == (stage_name, True)
            await stage.until(lambda: ids(stage.transport.deliveries) == ["1"], within=SOON)
            await stage.rest(2 * BOUND)
            assert len(stage.seen(RelayStalled)) == 1

    run_scenario(scenario)


def test_requests_that_are_never_carried_out_are_a_stall_although_events_flow() -> None:
    async def scenario(stage: Stage) -> None:
        over = asyncio.Event()
        requests_fail(stage, over)
        async with stage.running() as relay:
            stage.record(Event("a", {}, event_id="1"))
            await stage.until(lambda: ids(stage.transport.deliveries) == ["1"], within=SOON)
            await stage.until(lambda: bool(relay.stalled), within=BOUND + SOON)
            assert [one.stage for one in stage.seen(RelayStalled)] == ["coordinate"]
            over.set()
            await stage.until(lambda: not relay.stalled, within=SOON)

    run_scenario(scenario)


def test_a_decision_whose_row_is_rejected_is_a_stall_although_others_are_written() -> None:
    async def scenario(stage: Stage) -> None:
        settle = stage.store.writes.settle

        async def refusing(epochs: Any, decisions: Any) -> Any:
            written = await settle(epochs, [one for one in decisions if one.message.event_id != "refused"])
            if places := [one.message.position for one in decisions if one.message.event_id == "refused"]:
                # As stores do: after all others are written.
                raise RowsRefusedError("a trigger says no", positions=places)
            return written

        stage.store.writes.settle = refusing  # type: ignore[method-assign, assignment]
        async with stage.running():
            stage.record(Event("a", {}, event_id="refused"), Event("a", {}, event_id="beside"))
            for number in range(int(BOUND + SOON)):
                stage.record(Event("a", {}, event_id=str(number)))
                await stage.rest(1)
            assert [one.stage for one in stage.seen(RelayStalled)] == ["settle"]
            assert (await stage.store.admin.inspection.overview()).backlog == 1
            assert sum(one.delivered for one in stage.seen(BatchSettled)) == len(stage.transport.deliveries) - 1

    run_scenario(scenario)
