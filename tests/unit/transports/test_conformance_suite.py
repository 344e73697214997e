"""The conformance suite itself is tested: a transport with one defect fails the test for it."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from pillarbox.core.errors import PermanentError, RejectedError, SendError, UnavailableError
from pillarbox.core.transport import Outgoing, SendResult
from pillarbox.testing.conformance.transports import TransportConformance, lifecycle, outage, sending
from pillarbox.transports.memory import MemoryTransport
from tests.conformance.test_memory_transport import MemoryTransportHarness


class AcceptsBeforeItArrives(MemoryTransport):
    async def send(self, batch: Sequence[Outgoing]) -> list[SendResult]:
        return [None] * len(batch)


class LosesWhatWasUnderWayInAnOutage(MemoryTransport):
    async def send(self, batch: Sequence[Outgoing]) -> list[SendResult]:
        results = await super().send(batch)
        return [None if isinstance(result, UnavailableError) else result for result in results]


class ReversesALot(MemoryTransport):
    async def send(self, batch: Sequence[Outgoing]) -> list[SendResult]:
        return (await super().send(batch[::-1]))[::-1]


class SendsTwice(MemoryTransport):
    async def send(self, batch: Sequence[Outgoing]) -> list[SendResult]:
        await super().send(batch)
        return await super().send(batch)


class SwapsAnswers(MemoryTransport):
    async def send(self, batch: Sequence[Outgoing]) -> list[SendResult]:
        return (await super().send(batch))[::-1] if len(batch) == 2 else sorted(await super().send(batch), key=bool)


class FailsTheNeighbours(MemoryTransport):
    async def send(self, batch: Sequence[Outgoing]) -> list[SendResult]:
        results = await super().send(batch)
        return next(([result] * len(batch) for result in results if result is not None), results)


class BlamesTheDestination(MemoryTransport):
    async def send(self, batch: Sequence[Outgoing]) -> list[SendResult]:
        results = await super().send(batch)
        return [
            UnavailableError("something failed") if isinstance(result, RejectedError) else result for result in results
        ]


class BlamesTheMessage(MemoryTransport):
    async def send(self, batch: Sequence[Outgoing]) -> list[SendResult]:
        results = await super().send(batch)
        return [
            RejectedError("something failed") if isinstance(result, UnavailableError) else result for result in results
        ]


class RaisesInAnOutage(MemoryTransport):
    async def send(self, batch: Sequence[Outgoing]) -> list[SendResult]:
        for result in await super().send(batch):
            if result is not None:
                raise result
        return [None] * len(batch)


class StaysDown(MemoryTransport):
    def heal(self) -> None:
        pass


class DecodesBodies(MemoryTransport):
    async def send(self, batch: Sequence[Outgoing]) -> list[SendResult]:
        return await super().send([one._replace(body=one.body.decode(errors="replace").encode()) for one in batch])


class ForgetsHeaders(MemoryTransport):
    async def send(self, batch: Sequence[Outgoing]) -> list[SendResult]:
        return await super().send([one._replace(headers={}) for one in batch])


class MakesUpIds(MemoryTransport):
    async def send(self, batch: Sequence[Outgoing]) -> list[SendResult]:
        return await super().send(
            [one._replace(message=one.message._replace(event_id=f"{one.attempt}")) for one in batch]
        )


LEFT_BEHIND: list[asyncio.Task[Any]] = []


class LeavesTasksBehind(MemoryTransport):
    async def send(self, batch: Sequence[Outgoing]) -> list[SendResult]:
        task = asyncio.create_task(asyncio.Event().wait())
        LEFT_BEHIND.append(task)  # otherwise the garbage collector might remove it
        results = await super().send(batch)
        task.cancel()
        return results


class ShowsBodies(MemoryTransport):
    async def send(self, batch: Sequence[Outgoing]) -> list[SendResult]:
        results = await super().send(batch)
        return [result and RejectedError(f"could not send {one!r}") for one, result in zip(batch, results, strict=True)]


class WorksAfterTheClose(MemoryTransport):
    async def aclose(self) -> None:
        pass


class PingsBlindly(MemoryTransport):
    async def ping(self) -> None:
        pass


class HangsWhenClosed(MemoryTransport):
    async def send(self, batch: Sequence[Outgoing]) -> list[SendResult]:
        results = await super().send(batch)
        if any(isinstance(result, UnavailableError) for result in results):
            await asyncio.Event().wait()
        return results


class TakesRefusalsLightly(MemoryTransport):
    async def send(self, batch: Sequence[Outgoing]) -> list[SendResult]:
        results = await super().send(batch)
        return [RejectedError("no") if isinstance(result, PermanentError) else result for result in results]


MUTANTS: list[tuple[type[MemoryTransport], str, dict[str, Any]]] = [
    (AcceptsBeforeItArrives, "an_accepted_message_arrives", {}),
    (LosesWhatWasUnderWayInAnOutage, "an_unreachable_destination_is_unavailable_for_every_message", {}),
    (LosesWhatWasUnderWayInAnOutage, "messages_in_flight_during_the_close_have_a_result", {"turns": 1}),
    (ReversesALot, "a_batch_arrives_in_order", {}),
    (SendsTwice, "concurrent_sends_arrive_exactly_once", {}),
    (SwapsAnswers, "the_neighbours_of_an_unroutable_message_arrive", {}),
    (FailsTheNeighbours, "the_neighbours_of_an_unroutable_message_arrive", {}),
    (FailsTheNeighbours, "a_message_that_can_never_be_sent_fails_permanently_and_alone", {}),
    (TakesRefusalsLightly, "a_message_that_can_never_be_sent_fails_permanently_and_alone", {}),
    (BlamesTheDestination, "an_unroutable_message_is_rejected_and_may_be_retried", {}),
    (BlamesTheMessage, "a_lost_connection_is_unavailable", {}),
    (RaisesInAnOutage, "no_accepted_message_is_lost_around_an_outage", {}),
    (StaysDown, "it_reconnects_by_itself", {}),
    (DecodesBodies, "bytes_are_unchanged", {"body": b"\xff"}),
    (ForgetsHeaders, "headers_are_unchanged", {}),
    (MakesUpIds, "the_message_id_is_the_event_id_on_every_attempt", {"event_id": "a"}),
    (LeavesTasksBehind, "a_transport_works_after_a_cancelled_send", {"turns": 1}),
    (ShowsBodies, "errors_show_neither_secrets_nor_bodies", {}),
    (WorksAfterTheClose, "sending_after_the_close_is_unavailable", {}),
    (PingsBlindly, "ping_reports_whether_the_transport_can_send", {}),
    (HangsWhenClosed, "messages_in_flight_during_the_close_have_a_result", {"turns": 1}),
]


def shorten_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shortens the timeouts of the suite."""
    for module in (sending, outage, lifecycle):
        monkeypatch.setattr(module, "BOUND", 0.1)


@pytest.mark.parametrize(("mutant", "test", "values"), MUTANTS, ids=[f"{m.__name__}-{t}" for m, t, _ in MUTANTS])
async def test_a_broken_transport_fails_the_suite(
    monkeypatch: pytest.MonkeyPatch, mutant: type[MemoryTransport], test: str, values: dict[str, Any]
) -> None:
    checked = getattr(TransportConformance(), f"test_{test}")
    await checked(MemoryTransportHarness(), **values)
    shorten_timeouts(monkeypatch)
    with pytest.raises((AssertionError, TimeoutError, BaseExceptionGroup, SendError, pytest.fail.Exception)):
        await checked(MemoryTransportHarness(mutant), **values)
