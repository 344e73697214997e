"""Decisions that the database rejects, in virtual time: they are retried without delaying others."""

from __future__ import annotations

import asyncio
from typing import Any

from pillarbox import Event
from pillarbox.core.errors import RowsRefusedError
from pillarbox.core.observations import BatchSettled, StoreFailed
from pillarbox.core.retry import MAX_RECONNECT_PAUSE
from pillarbox.testing.lookup import find_event
from tests.simulation.stage import Stage
from tests.simulation.test_ways_to_run import run_scenario

LONG = 30.0
WRITE = 0.3
"""Seconds of a settlement."""


def refuse(stage: Stage, *event_ids: str, takes: float = 0.0) -> set[str]:
    """The store rejects these after it has written all others, as stores do. Returns those that it still rejects."""
    settle, refused = stage.store.writes.settle, set(event_ids)

    async def refusing(epochs: Any, decisions: Any) -> Any:
        await stage.rest(takes)
        written = await settle(epochs, [one for one in decisions if one.message.event_id not in refused])
        if places := [one.message.position for one in decisions if one.message.event_id in refused]:
            raise RowsRefusedError("a trigger says no", positions=places)
        return written

    stage.store.writes.settle = refusing  # type: ignore[method-assign, assignment]
    return refused


def settled(stage: Stage) -> int:
    return sum(one.delivered for one in stage.seen(BatchSettled))


def test_a_rejected_decision_is_written_under_load_as_soon_as_the_database_accepts_it() -> None:
    async def scenario(stage: Stage) -> None:
        refused = refuse(stage, "refused", takes=WRITE)
        stage.record(Event("a", {}, event_id="refused"))

        async def load() -> None:
            while True:
                stage.record(Event("a", {}))
                await stage.rest(WRITE / 4)

        async with stage.running():
            loading = asyncio.create_task(load())
            await stage.rest(LONG)
            refused.clear()
            await stage.rest(MAX_RECONNECT_PAUSE + 4 * WRITE)
            assert [row.status for row in await find_event(stage.store, "refused")] == ["PUBLISHED"]
            loading.cancel()

    run_scenario(scenario)


def test_no_decision_waits_for_a_rejected_one() -> None:
    async def scenario(stage: Stage) -> None:
        refuse(stage, "refused")
        stage.record(Event("a", {}, event_id="refused"))
        async with stage.running(tuned={"drain_timeout": "1s"}):
            await stage.rest(LONG)
            for number in range(20):
                stage.record(Event("a", {}))
                await stage.rest(0.2)  # Twice the poll interval.
                assert settled(stage) == number + 1
        assert LONG / MAX_RECONNECT_PAUSE < len(stage.seen(StoreFailed)) < 4 * LONG, "neither asleep nor in a hot loop"

    run_scenario(scenario)


def test_rejected_decisions_beyond_a_batch_are_retried() -> None:
    async def scenario(stage: Stage) -> None:
        names = [str(number) for number in range(25)]  # A settlement writes at most two batches.
        refused = refuse(stage, *names)
        stage.record(*(Event("a", {}, event_id=name) for name in names))
        async with stage.running(tuned={"batch_size": 5, "max_in_flight_batches": 8}):
            for number, name in enumerate(names):
                await stage.rest(4 * MAX_RECONNECT_PAUSE)
                assert settled(stage) == number
                refused.discard(name)

    run_scenario(scenario)
