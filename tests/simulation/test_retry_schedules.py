"""Common retry schedules through a whole relay in virtual time: each send at its time, and no others."""

from __future__ import annotations

from itertools import pairwise

import pytest

from pillarbox import Event, ExponentialBackoff, FixedDelay
from pillarbox.core.errors import RejectedError
from pillarbox.core.observations import EventDeadLettered
from pillarbox.core.retry import RetryPolicy
from pillarbox.core.transport import Outgoing
from pillarbox.relay.config import PRESETS, BreakerConfig, RelayConfig
from pillarbox.testing.lookup import find_event
from pillarbox.testing.simulation import Simulation, simulate
from tests.simulation.stage import Stage

CALM = RelayConfig(poll_interval="1s", lease="60s", heartbeat_interval="20s", send_timeout="5s", wakeup="none")
LATE = 1.5
"""A fetch is at most this late."""
DAY = 86_400.0
LONG_INTERVALS = RelayConfig(
    poll_interval="5m", lease="3h", heartbeat_interval="30m", send_timeout="5s", stall_limit="3h", wakeup="none"
)
"""For days: fewer fetches, the same decisions."""


def waits_between_sends(policy: RetryPolicy, *, sends: int) -> tuple[list[float], bool]:
    """Return the seconds between the sends of an event that is always rejected, and whether it was dead-lettered."""

    async def scenario(simulation: Simulation) -> tuple[list[float], bool]:
        stage = Stage(simulation, CALM)
        at: list[float] = []

        def never(_: Outgoing) -> RejectedError:
            at.append(stage.now)
            return RejectedError("no")

        stage.transport.script(never)
        stage.record(Event("doc.uploaded", {}, key="k"))
        async with stage.running(retry=policy):
            await stage.until(lambda: len(at) >= sends or bool(stage.seen(EventDeadLettered)), within=DAY)
            await stage.rest(5)
        waits = [after - before for before, after in pairwise(at)]
        return waits[: sends - 1], bool(stage.seen(EventDeadLettered))

    return simulate(scenario, seed=1, max_time=2 * DAY, max_steps=50_000_000)


def assert_schedule(waits: list[float], expected: list[float], *, most: float = 0.0) -> None:
    assert len(waits) == len(expected)
    for wait, shortest in zip(waits, expected, strict=True):
        assert shortest <= wait <= shortest + most + LATE


def test_ten_seconds_doubling_up_to_an_hour_ends_after_eleven_sends() -> None:
    policy = ExponentialBackoff(base="10s", multiplier=2, max_delay="1h", jitter="none", max_attempts=11)
    waits, dead_lettered = waits_between_sends(policy, sends=100)
    assert_schedule(waits, [10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600])
    assert dead_lettered


def test_one_second_doubling_up_to_a_minute() -> None:
    policy = ExponentialBackoff(base="1s", multiplier=2, max_delay="60s", jitter="none", max_attempts="unlimited")
    waits, dead_lettered = waits_between_sends(policy, sends=10)
    assert_schedule(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60])
    assert not dead_lettered


def test_thirty_seconds_doubling_up_to_half_an_hour_and_up_to_thirty_more() -> None:
    policy = ExponentialBackoff(base="30s", multiplier=2, max_delay="30m", jitter="additive", max_attempts="unlimited")
    waits, dead_lettered = waits_between_sends(policy, sends=10)
    assert_schedule(waits, [30, 60, 120, 240, 480, 960, 1800, 1800, 1800], most=30)
    assert not dead_lettered
    assert any(wait % 30 > 1 for wait in waits)


def test_every_second_without_limit() -> None:
    waits, dead_lettered = waits_between_sends(FixedDelay(delay="1s", max_attempts="unlimited"), sends=200)
    assert_schedule(waits, [1] * 199)
    assert not dead_lettered


@pytest.mark.parametrize(("name", "retries"), [("development", 3), ("staging", 5), ("production", 10)])
def test_a_preset_retries_as_often_as_documented(name: str, retries: int) -> None:
    waits, dead_lettered = waits_between_sends(PRESETS[name].retry, sends=100)
    assert len(waits) == retries
    assert dead_lettered


def test_an_outage_of_a_day_uses_up_no_attempts_and_dead_letters_nothing() -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = Stage(simulation, LONG_INTERVALS)
        stage.transport.outage()
        stage.record(*(Event("doc.uploaded", {}, event_id=f"{n}", key=f"{n % 3}") for n in range(9)))
        # Rare probes: this test does not test a day of them.
        rarely = {"breaker": BreakerConfig(max_delay="10m")}
        async with stage.running(retry=ExponentialBackoff(base="1s", max_delay="10s", max_attempts=3), tuned=rarely):
            await stage.rest(DAY)
            for n in range(9):
                [row] = await find_event(stage.store, f"{n}")
                assert (row.status, row.attempts) == ("PENDING", 0)
            [first] = await find_event(stage.store, "0")
            assert first.retry_count > 0
            assert first.last_error is not None
            stage.transport.heal()
            await stage.until(lambda: len(stage.transport.deliveries) == 9, within=3600)

    simulate(scenario, seed=1, max_time=2 * DAY, max_steps=50_000_000)
