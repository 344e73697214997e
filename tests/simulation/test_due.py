"""A retry is sent when its delay is over, regardless of other work of the relay."""

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
    """Rejects events whose id begins with "bad" that many times, and records when."""

    def __init__(self, stage: Stage, *, times: int) -> None:
        self.attempts: dict[str, list[float]] = {}
        self._stage = stage
        self._times = times
        stage.transport.script(self._refuse)

    @property
    def gaps(self) -> list[float]:
        return [round(after - before, 3) for attempts in self.attempts.values() for before, after in pairwise(attempts)]

    def _refuse(self, one: Outgoing) -> RejectedError | None:
        name = one.message.event_id
        if not name.startswith("bad"):
            return None
        self.attempts.setdefault(name, []).append(self._stage.now)
        return RejectedError("no") if len(self.attempts[name]) <= self._times else None


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
def test_a_retry_is_sent_when_its_delay_ends(busy: bool) -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = Stage(simulation)
        rejecting = Rejecting(stage, times=5)
        async with stage.running(retry=FixedDelay(delay="100ms", max_attempts="unlimited")):
            await stage.rest(1)
            stage.record(Event("a", {}, event_id="bad", key="bad"))
            for number in range(400):
                if busy:
                    stage.record(Event("a", {}, key=f"{number}"))
                await stage.rest(0.01)
        assert len(rejecting.gaps) == 5
        assert max(rejecting.gaps) < 0.15

    simulate(scenario, seed=1)


def test_retries_settled_one_after_another_are_sent_when_their_delays_end() -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = Stage(simulation)
        rejecting = Rejecting(stage, times=1)
        async with stage.running(retry=FixedDelay(delay="103ms", max_attempts="unlimited")):
            await stage.rest(1)
            for number in range(100):
                name = f"{'bad' if number < 8 else 'good'}{number}"
                stage.record(Event("a", {}, event_id=name, key=name), Event("a", {}, key=f"{number}"))
                await stage.rest(0.01)
        assert len(rejecting.gaps) == 8
        assert max(rejecting.gaps) < 0.15

    simulate(scenario, seed=1)


def test_an_idle_relay_does_not_sleep_past_a_retry() -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = Stage(simulation)
        rejecting = Rejecting(stage, times=1)
        async with stage.running(
            tuned={"poll_interval": "10s"}, retry=FixedDelay(delay="6s", max_attempts="unlimited")
        ):
            await stage.rest(1)
            stage.record(Event("a", {}, event_id="bad", key="bad"))
            await stage.until(lambda: len(rejecting.gaps) == 1)
        assert rejecting.gaps[0] < 6.1

    simulate(scenario, seed=1)


def test_a_due_event_behind_many_that_are_held_back_is_found_at_once() -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = Stage(simulation)
        Rejecting(stage, times=1)
        async with stage.running(tuned={"batch_size": 10, "max_in_flight_batches": 4}, retry=FixedDelay(delay="1h")):
            stage.record(Event("a", {}, event_id="bad", key="stuck"))
            await stage.rest(1)
            now = simulation.clock.now()
            first, second = now + timedelta(seconds=1), now + timedelta(seconds=2)
            stage.record(*(Event("a", {}, key="stuck", available_at=first) for _ in range(400)))
            stage.record(Event("a", {}, event_id="free", key="free", available_at=second))
            await stage.until(lambda: ids(stage.transport.deliveries) == ["free"], within=4)

    simulate(scenario, seed=1)
