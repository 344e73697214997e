"""A retry is sent when its delay is over, whatever else the relay does."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

import pytest

from pillarbox import Event, FixedDelay
from pillarbox.core.errors import RejectedError
from pillarbox.core.transport import Outgoing
from pillarbox.testing.simulation import Simulation, simulate
from tests.simulation.stage import Stage, ids


class Rejecting:
    """Rejects events whose id begins with "bad" so many times, and records when."""

    def __init__(self, stage: Stage, *, times: int) -> None:
        self.tries: dict[str, list[float]] = {}
        self._stage = stage
        self._times = times
        stage.transport.script(self._refuse)

    @property
    def gaps(self) -> list[float]:
        return [round(after - before, 3) for tries in self.tries.values() for before, after in pairwise(tries)]

    def _refuse(self, one: Outgoing) -> RejectedError | None:
        name = one.message.event_id
        if not name.startswith("bad"):
            return None
        self.tries.setdefault(name, []).append(self._stage.now)
        return RejectedError("no") if len(self.tries[name]) <= self._times else None


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
def test_a_retry_comes_when_its_delay_is_over(busy: bool) -> None:
    async def story(simulation: Simulation) -> None:
        stage = Stage(simulation)
        rejecting = Rejecting(stage, times=5)
        async with stage.running(retry=FixedDelay(wait="100ms", max_attempts=0)):
            await stage.rest(1)
            stage.record(Event("a", {}, event_id="bad", key="bad"))
            for number in range(400):
                if busy:
                    stage.record(Event("a", {}, key=f"{number}"))
                await stage.rest(0.01)
        assert len(rejecting.gaps) == 5
        assert max(rejecting.gaps) < 0.15

    simulate(story, seed=1)


def test_retries_that_are_written_one_after_another_come_when_their_delays_are_over() -> None:
    async def story(simulation: Simulation) -> None:
        stage = Stage(simulation)
        rejecting = Rejecting(stage, times=1)
        async with stage.running(retry=FixedDelay(wait="103ms", max_attempts=0)):
            await stage.rest(1)
            for number in range(100):
                name = f"{'bad' if number < 8 else 'good'}{number}"
                stage.record(Event("a", {}, event_id=name, key=name), Event("a", {}, key=f"{number}"))
                await stage.rest(0.01)
        assert len(rejecting.gaps) == 8
        assert max(rejecting.gaps) < 0.15

    simulate(story, seed=1)


def test_an_idle_relay_does_not_sleep_past_a_retry() -> None:
    async def story(simulation: Simulation) -> None:
        stage = Stage(simulation)
        rejecting = Rejecting(stage, times=1)
        async with stage.running(tuned={"poll_interval": "10s"}, retry=FixedDelay(wait="6s", max_attempts=0)):
            await stage.rest(1)
            stage.record(Event("a", {}, event_id="bad", key="bad"))
            await stage.until(lambda: len(rejecting.gaps) == 1)
        assert rejecting.gaps[0] < 6.1

    simulate(story, seed=1)


def test_a_due_event_behind_many_that_are_held_back_is_found_at_once() -> None:
    async def story(simulation: Simulation) -> None:
        stage = Stage(simulation)
        Rejecting(stage, times=1)
        async with stage.running(tuned={"batch_size": 10, "in_flight": 4}, retry=FixedDelay(wait="1h")):
            stage.record(Event("a", {}, event_id="bad", key="stuck"))
            await stage.rest(1)
            now = simulation.clock.now()
            first, second = now + timedelta(seconds=1), now + timedelta(seconds=2)
            stage.record(*(Event("a", {}, key="stuck", available_at=first) for _ in range(400)))
            stage.record(Event("a", {}, event_id="free", key="free", available_at=second))
            await stage.until(lambda: ids(stage.transport.deliveries) == ["free"], within=4)

    simulate(story, seed=1)
