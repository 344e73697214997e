"""The transport: its settings, and its window of unconfirmed messages, which no cancellation shrinks."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pillarbox.core.errors import ConfigurationError
from pillarbox.testing.simulation import Simulation, simulate
from pillarbox.transports.rabbitmq import RabbitMQTransport
from pillarbox.transports.rabbitmq.confirms import ConfirmWindow


@pytest.mark.parametrize(
    "wrong",
    [
        {"window": 0},
        {"window": 1.5},
        {"window": True},
        {"send_timeout": "0s"},
        {"send_timeout": "soon"},
        {"connect_timeout": 0},
        {"heartbeat": "-1s"},
    ],
)
def test_an_invalid_setting_is_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        RabbitMQTransport("amqp://mq/", **wrong)


def test_without_routes_an_event_goes_to_the_queue_named_after_its_type() -> None:
    assert RabbitMQTransport("amqp://mq/").defaults("order.{placed}") == {"order.{placed}": RabbitMQTransport.to()}


class Batches:
    """Batches that share one window, and the order in which they entered it."""

    def __init__(self, size: int) -> None:
        self.window = ConfirmWindow(size)
        self.unconfirmed = 0
        self.most = 0
        self.entered: list[int] = []

    async def publish(self, number: int, count: int, seconds: float) -> None:
        await self.window.acquire(count)
        self.entered.append(number)
        self.unconfirmed += count
        self.most = max(self.most, self.unconfirmed)
        try:
            await asyncio.sleep(seconds)
        finally:
            self.unconfirmed -= count
            self.window.release(count)


async def test_a_small_request_does_not_overtake_a_large_one() -> None:
    batches = Batches(10)
    await asyncio.gather(*(batches.publish(n, count, 0) for n, count in enumerate([6, 8, 1, 1])))
    assert batches.entered == [0, 1, 2, 3]


@given(
    publishes=st.lists(st.tuples(st.integers(1, 5), st.integers(0, 3), st.booleans()), max_size=20),
    seed=st.integers(0, 1000),
)
def test_the_window_is_never_exceeded_and_never_shrinks(publishes: list[tuple[int, int, bool]], seed: int) -> None:
    async def run(simulation: Simulation) -> None:
        batches = Batches(5)
        tasks = [
            asyncio.create_task(batches.publish(n, count, seconds)) for n, (count, seconds, _) in enumerate(publishes)
        ]
        for task, (*_, cancelled) in zip(tasks, publishes, strict=True):
            await asyncio.sleep(0.5)
            if cancelled:
                task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task
        assert batches.most <= 5
        assert batches.unconfirmed == 0
        async with asyncio.timeout(1):
            await batches.window.acquire(5)

    simulate(run, seed=seed)
