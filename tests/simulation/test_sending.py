"""The begin and end of sends: none outlives its relay, and none waits for a timer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress

import pytest

from pillarbox import Event
from pillarbox.core.clock import RandomSource
from pillarbox.core.errors import RejectedError, RelayFailedError, StoreUnavailableError
from pillarbox.core.lane import Epochs, Settled
from pillarbox.core.outcome import Split
from pillarbox.core.transport import Outgoing, Pace, SendResult
from pillarbox.relay.routing import Destination, Route
from pillarbox.relay.send import MAX_SEND_PAUSE
from pillarbox.testing.simulation import Simulation, simulate
from pillarbox.transports.memory import MemoryTransport
from tests.simulation.stage import Stage, ids


class Raising:
    """A retry policy of the application that raises, which ends the relay."""

    def delay_after(self, failures: int, rng: RandomSource) -> float | None:
        raise ZeroDivisionError


class EndsSlowly(MemoryTransport):
    """Rejects the event `bad`, and ends slowly if it is cancelled."""

    under_way = 0

    async def send(self, batch: Sequence[Outgoing]) -> list[SendResult]:
        self.under_way += 1
        try:
            if batch[0].message.event_id == "bad":
                await self._clock.sleep(1)
                return [RejectedError("no")]
            try:
                await self._clock.sleep(3)
            except asyncio.CancelledError:
                await self._clock.sleep(2)
                raise
            return await super().send(batch)
        finally:
            self.under_way -= 1


class AnswersAnyway(MemoryTransport):
    """Returns results although it is cancelled, as if the confirm had arrived already."""

    begun = 0

    async def send(self, batch: Sequence[Outgoing]) -> list[SendResult]:
        self.begun += 1
        if batch[0].message.event_id == "bad":
            await self._clock.sleep(1)
            return [RejectedError("no")]
        with suppress(asyncio.CancelledError):
            await self._clock.sleep(0.1)
        return [None] * len(batch)


class EndsAfterTheLimit(MemoryTransport):
    """The first send hangs, and takes longer than the limit to end after it was cancelled."""

    begun = 0

    async def send(self, batch: Sequence[Outgoing]) -> list[SendResult]:
        self.begun += 1
        if self.begun == 1:
            try:
                await asyncio.Event().wait()
            finally:
                await self._clock.sleep(20)
        return await super().send(batch)


class ReturnsAfterTheLimit(MemoryTransport):
    """The first send returns although it was cancelled; each later one has a timeout of its own."""

    begun = 0

    async def send(self, batch: Sequence[Outgoing]) -> list[SendResult]:
        self.begun += 1
        if self.begun == 1:
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
        elif self.begun == 2:
            with suppress(TimeoutError):
                async with asyncio.timeout(0.1):
                    await asyncio.Event().wait()
        return await super().send(batch)


class CancelsItself(MemoryTransport):
    """The first send ends with the cancellation of a task of its own."""

    begun = 0

    async def send(self, batch: Sequence[Outgoing]) -> list[SendResult]:
        self.begun += 1
        if self.begun == 1:
            inner = asyncio.ensure_future(asyncio.Event().wait())
            asyncio.get_running_loop().call_later(1, inner.cancel)
            await inner
        return await super().send(batch)


class StreamsForever(MemoryTransport):
    """Its stream never ends; it has no timeout of its own."""

    async def stream(self, batch: Sequence[Outgoing]) -> AsyncGenerator[list[tuple[int, SendResult]], None]:
        await asyncio.Event().wait()
        yield []


@pytest.mark.parametrize(
    ("kind", "pace"),
    [
        (EndsAfterTheLimit, Pace(concurrency=2, in_order=True, progress=lambda: 0)),
        (ReturnsAfterTheLimit, Pace(concurrency=2, in_order=True, progress=lambda: 0)),
        (CancelsItself, Pace()),
        (StreamsForever, Pace(independent_results=True)),
    ],
)
def test_events_are_delivered_after_a_send_that_ends_badly(kind: type[MemoryTransport], pace: Pace) -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = Stage(simulation)
        stage.transport = transport = kind(clock=simulation.clock, pace=pace)
        async with stage.running():
            stage.record(Event("a", {}, event_id="first", key="1"))
            await stage.rest(60)
            stage.record(Event("a", {}, event_id="second", key="2"), Event("a", {}, event_id="third", key="3"))
            await stage.until(lambda: not stage.store._tables.waiting, within=300)
        assert set(ids(transport.deliveries)) == {"first", "second", "third"}

    simulate(scenario, seed=1)


class AnswersWithPauses(MemoryTransport):
    """Returns results message by message, with an empty list before each."""

    streamed = 0

    async def stream(self, batch: Sequence[Outgoing]) -> AsyncGenerator[list[tuple[int, SendResult]], None]:
        self.streamed += 1
        for position, result in enumerate(await self.send(batch)):
            yield []
            yield [(position, result)]


def test_a_transport_may_return_an_empty_list() -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = Stage(simulation)
        stage.transport = transport = AnswersWithPauses(
            clock=simulation.clock, pace=Pace(independent_results=True, has_own_timeout=True)
        )
        stage.record(*(Event("a", {}, event_id=f"{number}") for number in range(3)))
        async with stage.running():
            await stage.until(lambda: not stage.store._tables.waiting)
        assert sorted(ids(transport.deliveries)) == ["0", "1", "2"]
        assert transport.streamed > 0

    simulate(scenario, seed=1)


def test_no_send_outlives_a_relay_that_ends_by_itself() -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = Stage(simulation)
        transport = EndsSlowly(clock=simulation.clock, pace=Pace(batch_size=1, concurrency=4, in_order=True))
        relay = stage.relay(transports={"memory": transport}, retry=Raising())
        running = asyncio.create_task(relay.run())
        await stage.rest(0.5)
        stage.record(Event("a", {}, event_id="bad", key="1"), Event("a", {}, event_id="slow", key="2"))
        await stage.until(lambda: transport.under_way == 2)
        await stage.until(lambda: transport.under_way == 1, within=2)
        # It is fetched while the relay waits for the slow one to end.
        stage.record(Event("a", {}, event_id="late", key="3"))
        with pytest.raises(RelayFailedError):
            await running
        assert transport.under_way == 0

    simulate(scenario, seed=1)


def test_a_relay_ends_although_its_transport_returns_results_of_cancelled_sends() -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = Stage(simulation)
        transport = AnswersAnyway(clock=simulation.clock, pace=Pace(batch_size=1, concurrency=4, in_order=True))
        relay = stage.relay(transports={"memory": transport}, retry=Raising())
        stage.record(Event("a", {}, event_id="bad", key="1"), *(Event("a", {}, key="2") for _ in range(600)))
        with pytest.raises(RelayFailedError):
            async with asyncio.timeout(20):
                await relay.run()
        assert transport.begun < 20

    simulate(scenario, seed=1)


def test_fetched_messages_are_sent_although_a_write_of_the_same_round_failed() -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = Stage(simulation)

        async def refused(epochs: Epochs, splits: Sequence[Split]) -> Settled:
            raise StoreUnavailableError("no")

        stage.store.writes.split = refused  # type: ignore[method-assign, assignment]
        ways = {
            "destinations": {name: Destination(MemoryTransport.to(name)) for name in "ab"},
            "routes": [Route(to=["a", "b"], event_type="several"), Route(to=["a"])],
        }
        async with stage.running(**ways):
            await stage.rest(MAX_SEND_PAUSE / 2)
            stage.record(Event("one", {}, event_id="one", key="1"), Event("several", {}, key="2"))
            await stage.until(lambda: ids(stage.transport.deliveries) == ["one"], within=MAX_SEND_PAUSE / 4)

    simulate(scenario, seed=1)
