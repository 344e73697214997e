"""The conformance suite itself is tested: a transport with one defect fails the test for it."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from pillarbox.core.errors import PermanentError, RejectedError, SendError, UnavailableError
from pillarbox.core.transport import Outgoing, Result
from pillarbox.testing.conformance.transports import TransportConformance, lifecycle, outage, sending
from pillarbox.transports.memory import MemoryTransport
from tests.conformance.test_memory_transport import MemoryTransportHarness


class AcceptsBeforeItArrives(MemoryTransport):
    async def send(self, batch: Sequence[Outgoing]) -> list[Result]:
        return [None] * len(batch)


class LosesWhatWasUnderWayInAnOutage(MemoryTransport):
    async def send(self, batch: Sequence[Outgoing]) -> list[Result]:
        answers = await super().send(batch)
        return [None if isinstance(answer, UnavailableError) else answer for answer in answers]


class ReversesALot(MemoryTransport):
    async def send(self, batch: Sequence[Outgoing]) -> list[Result]:
        return (await super().send(batch[::-1]))[::-1]


class SendsTwice(MemoryTransport):
    async def send(self, batch: Sequence[Outgoing]) -> list[Result]:
        await super().send(batch)
        return await super().send(batch)


class SwapsAnswers(MemoryTransport):
    async def send(self, batch: Sequence[Outgoing]) -> list[Result]:
        return (await super().send(batch))[::-1] if len(batch) == 2 else sorted(await super().send(batch), key=bool)


class FailsTheNeighbours(MemoryTransport):
    async def send(self, batch: Sequence[Outgoing]) -> list[Result]:
        answers = await super().send(batch)
        return next(([answer] * len(batch) for answer in answers if answer is not None), answers)


class BlamesTheDestination(MemoryTransport):
    async def send(self, batch: Sequence[Outgoing]) -> list[Result]:
        answers = await super().send(batch)
        return [
            UnavailableError("something failed") if isinstance(answer, RejectedError) else answer for answer in answers
        ]


class BlamesTheMessage(MemoryTransport):
    async def send(self, batch: Sequence[Outgoing]) -> list[Result]:
        answers = await super().send(batch)
        return [
            RejectedError("something failed") if isinstance(answer, UnavailableError) else answer for answer in answers
        ]


class RaisesInAnOutage(MemoryTransport):
    async def send(self, batch: Sequence[Outgoing]) -> list[Result]:
        for answer in await super().send(batch):
            if answer is not None:
                raise answer
        return [None] * len(batch)


class StaysDown(MemoryTransport):
    def heal(self) -> None:
        pass


class DecodesBodies(MemoryTransport):
    async def send(self, batch: Sequence[Outgoing]) -> list[Result]:
        return await super().send([one._replace(body=one.body.decode(errors="replace").encode()) for one in batch])


class ForgetsHeaders(MemoryTransport):
    async def send(self, batch: Sequence[Outgoing]) -> list[Result]:
        return await super().send([one._replace(headers={}) for one in batch])


class MakesUpIds(MemoryTransport):
    async def send(self, batch: Sequence[Outgoing]) -> list[Result]:
        return await super().send(
            [one._replace(message=one.message._replace(event_id=f"{one.attempt}")) for one in batch]
        )


LEFT_BEHIND: list[asyncio.Task[Any]] = []


class LeavesTasksBehind(MemoryTransport):
    async def send(self, batch: Sequence[Outgoing]) -> list[Result]:
        task = asyncio.create_task(asyncio.Event().wait())
        LEFT_BEHIND.append(task)  # otherwise the garbage collector might remove it
        answers = await super().send(batch)
        task.cancel()
        return answers


class ShowsBodies(MemoryTransport):
    async def send(self, batch: Sequence[Outgoing]) -> list[Result]:
        answers = await super().send(batch)
        return [answer and RejectedError(f"could not send {one!r}") for one, answer in zip(batch, answers, strict=True)]


class WorksAfterTheClose(MemoryTransport):
    async def aclose(self) -> None:
        pass


class PingsBlindly(MemoryTransport):
    async def ping(self) -> None:
        pass


class HangsWhenClosed(MemoryTransport):
    async def send(self, batch: Sequence[Outgoing]) -> list[Result]:
        answers = await super().send(batch)
        if any(isinstance(answer, UnavailableError) for answer in answers):
            await asyncio.Event().wait()
        return answers


class TakesRefusalsLightly(MemoryTransport):
    async def send(self, batch: Sequence[Outgoing]) -> list[Result]:
        answers = await super().send(batch)
        return [RejectedError("no") if isinstance(answer, PermanentError) else answer for answer in answers]


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
    (PingsBlindly, "ping_tells_whether_the_transport_can_send", {}),
    (HangsWhenClosed, "messages_in_flight_during_the_close_have_a_result", {"turns": 1}),
]


def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shortens the timeouts of the suite."""
    for module in (sending, outage, lifecycle):
        monkeypatch.setattr(module, "BOUND", 0.1)


@pytest.mark.parametrize(("mutant", "test", "values"), MUTANTS, ids=[f"{m.__name__}-{t}" for m, t, _ in MUTANTS])
async def test_a_broken_transport_fails_the_suite(
    monkeypatch: pytest.MonkeyPatch, mutant: type[MemoryTransport], test: str, values: dict[str, Any]
) -> None:
    checked = getattr(TransportConformance(), f"test_{test}")
    await checked(MemoryTransportHarness(), **values)
    impatient(monkeypatch)
    with pytest.raises((AssertionError, TimeoutError, BaseExceptionGroup, SendError, pytest.fail.Exception)):
        await checked(MemoryTransportHarness(mutant), **values)
