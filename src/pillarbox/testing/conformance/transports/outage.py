"""Outages: the destination is at fault, no accepted message is lost, and the transport reconnects by itself."""

from __future__ import annotations

import asyncio
from itertools import count

import pytest

from pillarbox.core.errors import UnavailableError
from pillarbox.core.transport import Result
from pillarbox.testing.conformance.transports.capability import needs
from pillarbox.testing.conformance.transports.harness import TransportHarness
from pillarbox.testing.conformance.transports.sending import BOUND, arrived_ids, outgoing, send
from pillarbox.testing.waiting import eventually


async def sendable_again(harness: TransportHarness, name: str) -> None:
    """Send until the connection works again."""
    numbers, place = count(), harness.address(9)

    async def accepted() -> bool:
        [answer] = await send(harness, outgoing(f"{name}{next(numbers)}", place))
        assert answer is None or isinstance(answer, UnavailableError)
        return answer is None

    await eventually(accepted, within=BOUND)


class OutageConformance:
    async def test_an_unreachable_destination_is_unavailable_for_every_message(self, harness: TransportHarness) -> None:
        needs(harness, "outages")
        place = harness.address()
        await harness.cut()
        answers = await send(harness, *(outgoing(f"e{n}", place) for n in range(3)))
        assert [isinstance(answer, UnavailableError) for answer in answers] == [True] * 3

    async def test_a_lost_connection_is_unavailable(self, harness: TransportHarness) -> None:
        needs(harness, "outages")
        place = harness.address()
        assert await send(harness, outgoing("a", place)) == [None]
        await harness.cut()
        for attempt in (1, 2, 3):
            [answer] = await send(harness, outgoing("b", place, attempt=attempt))
            assert isinstance(answer, UnavailableError)

    async def test_it_reconnects_by_itself(self, harness: TransportHarness) -> None:
        needs(harness, "outages")
        for outage in range(3):
            await sendable_again(harness, f"before{outage}")
            await harness.cut()
            [answer] = await send(harness, outgoing(f"during{outage}", harness.address()))
            assert isinstance(answer, UnavailableError)
            await harness.heal()
        await sendable_again(harness, "after")

    async def test_no_accepted_message_is_lost_around_an_outage(self, harness: TransportHarness) -> None:
        needs(harness, "outages")
        answers: dict[str, Result] = {}
        batches = count()
        size = min(harness.transport.pace.batch_size, 20)
        over = asyncio.Event()

        async def stream(place_number: int) -> None:
            place = harness.address(place_number)
            while not over.is_set():
                ids = [f"{place_number}-{next(batches)}-{n}" for n in range(size)]
                answers.update(zip(ids, await send(harness, *(outgoing(one, place) for one in ids)), strict=True))
                await asyncio.sleep(0)

        async def some(unavailable: bool) -> None:
            before = len(answers)

            async def seen() -> bool:
                return any(isinstance(a, UnavailableError) is unavailable for a in list(answers.values())[before:])

            await eventually(seen, within=BOUND)

        async with asyncio.TaskGroup() as group:
            for number in (0, 1):
                group.create_task(stream(number))
            await some(unavailable=False)
            await harness.cut()
            await some(unavailable=True)
            await harness.heal()
            await some(unavailable=False)
            over.set()
        assert all(answer is None or isinstance(answer, UnavailableError) for answer in answers.values())
        for number in (0, 1):
            accepted = {one for one, answer in answers.items() if answer is None and one.startswith(f"{number}-")}
            assert accepted <= set(await arrived_ids(harness, harness.address(number), len(accepted)))

    async def test_ping_tells_whether_the_transport_can_send(self, harness: TransportHarness) -> None:
        needs(harness, "outages")
        await harness.transport.ping()
        await harness.cut()
        async with asyncio.timeout(BOUND):
            with pytest.raises(UnavailableError):
                await harness.transport.ping()
        await harness.heal()
        await sendable_again(harness, "after")
        await harness.transport.ping()

    async def test_the_transport_survives_a_restart(self, harness: TransportHarness) -> None:
        needs(harness, "survives_restart")
        assert await send(harness, outgoing("a", harness.address())) == [None]
        await harness.restart()
        await sendable_again(harness, "after")
