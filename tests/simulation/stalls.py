"""Faults of a store that stall a relay, and the bounds within which the relay reports it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from pillarbox.core.errors import StoreUnavailableError
from pillarbox.core.observations import (
    RelayStalled,
)
from pillarbox.core.store import Ledger
from pillarbox.relay.relay import Relay
from pillarbox.stores.memory import MemoryStore
from pillarbox.testing.simulation import Simulation, simulate
from tests.simulation.stage import Stage

BOUND = 10.0 + 15.0 + 0.1
"""The lease of the stage, the stated 15 seconds, and its poll interval."""
SOON = 5.0
LONG = 4 * BOUND

Fault = Callable[[Stage, asyncio.Event], None]


def run_scenario(scenario: Callable[[Stage], Awaitable[None]]) -> None:
    async def staged(simulation: Simulation) -> None:
        await scenario(Stage(simulation))

    for seed in range(2):
        simulate(staged, seed=seed)


def faulty(of: Any, verb: str, over: asyncio.Event, error: Exception | None = None) -> None:
    """Make a method of the store raise `error`, or not return, until `over` is set."""
    works = getattr(of, verb)

    async def fails(*arguments: Any, **options: Any) -> Any:
        if not over.is_set():
            if error is not None:
                raise error
            await over.wait()
        return await works(*arguments, **options)

    setattr(of, verb, fails)


def fetch_hangs(stage: Stage, over: asyncio.Event) -> None:
    faulty(stage.store.messages, "fetch", over)


def fetch_fails(stage: Stage, over: asyncio.Event) -> None:
    faulty(stage.store.messages, "fetch", over, StoreUnavailableError("statement timeout"))


def settle_hangs(stage: Stage, over: asyncio.Event) -> None:
    faulty(stage.store.writes, "settle", over)


def settle_fails(stage: Stage, over: asyncio.Event) -> None:
    faulty(stage.store.writes, "settle", over, StoreUnavailableError("disk full"))


def take_hangs(stage: Stage, over: asyncio.Event) -> None:
    faulty(stage.store.lanes, "acquire", over)


def take_fails(stage: Stage, over: asyncio.Event) -> None:
    faulty(stage.store.lanes, "acquire", over, StoreUnavailableError("permission denied"))


def requests_fail(stage: Stage, over: asyncio.Event) -> None:
    faulty(stage.store.writes, "execute_requests", over, StoreUnavailableError("permission denied"))


def with_ledger(stage: Stage) -> Ledger:
    stage.store = MemoryStore(lanes=8, clock=stage.simulation.clock, ledger=True)
    assert stage.store.ledger is not None
    return stage.store.ledger


def ledger_hangs(stage: Stage, over: asyncio.Event) -> None:
    faulty(with_ledger(stage), "begin", over)


def ledger_fails(stage: Stage, over: asyncio.Event) -> None:
    faulty(with_ledger(stage), "begin", over, StoreUnavailableError("disk full"))


@asynccontextmanager
async def waiting(stage: Stage, **options: Any) -> AsyncIterator[Relay]:
    """Run a relay that has a reason to wait, and check that it reports no stall."""
    async with stage.running(**options) as relay:
        yield relay
        await stage.rest(LONG)
        assert (stage.seen(RelayStalled), relay.stalled) == ([], "")
