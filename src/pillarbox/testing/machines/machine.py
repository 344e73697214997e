"""A state machine with its own store and event loop for each run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeVar, cast

from hypothesis import settings as HypothesisSettings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from pillarbox.testing.conformance.harness import StoreHarness

T = TypeVar("T")

OpenHarness = Callable[[], AbstractAsyncContextManager[StoreHarness]]
MakeLoop = Callable[[], asyncio.AbstractEventLoop]


class StoreMachine(RuleBasedStateMachine):
    """Opens a fresh harness, and closes it after the last step."""

    def __init__(self, open_harness: OpenHarness, make_loop: MakeLoop) -> None:
        super().__init__()
        self._loop = make_loop()
        self._opened = open_harness()
        self.harness = self.run(self._opened.__aenter__())
        self.store = self.harness.store
        self.run(self.prepare())

    def run(self, awaitable: Awaitable[T]) -> T:
        """Run the event loop until the awaitable is done; rules are synchronous."""
        return self._loop.run_until_complete(awaitable)

    async def prepare(self) -> None:
        """Prepare the store before the first rule."""

    def teardown(self) -> None:
        try:
            self.run(self._opened.__aexit__(None, None, None))
        finally:
            self._loop.close()


def run_machine(
    machine: type[StoreMachine],
    open_harness: OpenHarness,
    settings: HypothesisSettings,
    *,
    make_loop: MakeLoop = asyncio.new_event_loop,
) -> None:
    """Run the machine at random; raises with the shortest run that differs from the model."""
    # Any factory works; the annotation of hypothesis asks for a class.
    factory = cast("type[StoreMachine]", lambda: machine(open_harness, make_loop))
    run_state_machine_as_test(factory, settings=settings)
