"""Outages: the destination is at fault, no accepted message is lost, and the transport reconnects by itself."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from itertools import count

import pytest

from pillarbox.core.errors import ConfigurationError, UnavailableError
from pillarbox.core.transport import SendResult
from pillarbox.relay.relay import Relay
from pillarbox.relay.routing import Destination, Route
from pillarbox.stores.memory import MemoryStore
from pillarbox.testing.conformance.capability import skip_unsupported
from pillarbox.testing.conformance.transports.capability import needs
from pillarbox.testing.conformance.transports.harness import TransportHarness
from pillarbox.testing.conformance.transports.sending import BOUND, arrived_ids, outgoing, send
from pillarbox.testing.waiting import eventually


async def sendable_again(harness: TransportHarness, name: str, number: int = 9) -> None:
    """Send until the connection works again, to the address of that number."""
    numbers, address = count(), harness.address(number)

    async def accepted() -> bool:
        [result] = await send(harness, outgoing(f"{name}{next(numbers)}", address))
        assert result is None or isinstance(result, UnavailableError)
        return result is None

    await eventually(accepted, within=BOUND)


class TransportOutageConformance:
    async def test_an_unreachable_destination_is_unavailable_for_every_message(self, harness: TransportHarness) -> None:
        needs(harness, "outages")
        address = harness.address()
        await harness.cut()
        results = await send(harness, *(outgoing(f"e{n}", address) for n in range(3)))
        assert [isinstance(result, UnavailableError) for result in results] == [True] * 3

    async def test_a_lost_connection_is_unavailable(self, harness: TransportHarness) -> None:
        needs(harness, "outages")
        address = harness.address()
        assert await send(harness, outgoing("a", address)) == [None]
        await harness.cut()
        for attempt in (1, 2, 3):
            [result] = await send(harness, outgoing("b", address, attempt=attempt))
            assert isinstance(result, UnavailableError)

    async def test_it_reconnects_by_itself(self, harness: TransportHarness) -> None:
        needs(harness, "outages")
        for outage in range(3):
            await sendable_again(harness, f"before{outage}")
            await harness.cut()
            [result] = await send(harness, outgoing(f"during{outage}", harness.address()))
            assert isinstance(result, UnavailableError)
            await harness.heal()
        await sendable_again(harness, "after")

    async def test_no_accepted_message_is_lost_around_an_outage(self, harness: TransportHarness) -> None:
        needs(harness, "outages")
        results: dict[str, SendResult] = {}
        batches = count()
        size = min(harness.transport.pace.batch_size, 20)
        over = asyncio.Event()

        async def stream(address_number: int) -> None:
            address = harness.address(address_number)
            while not over.is_set():
                ids = [f"{address_number}-{next(batches)}-{n}" for n in range(size)]
                results.update(zip(ids, await send(harness, *(outgoing(one, address) for one in ids)), strict=True))
                await asyncio.sleep(0)

        async def some(unavailable: bool) -> None:
            before = len(results)

            async def seen() -> bool:
                return any(isinstance(a, UnavailableError) is unavailable for a in list(results.values())[before:])

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
        assert all(result is None or isinstance(result, UnavailableError) for result in results.values())
        for number in (0, 1):
            accepted = {one for one, result in results.items() if result is None and one.startswith(f"{number}-")}
            assert accepted <= set(await arrived_ids(harness, harness.address(number), len(accepted)))

    async def test_a_batch_that_an_outage_interrupts_has_no_holes(self, harness: TransportHarness) -> None:
        """Pipelined ordering needs this: a message arrives only if all before it did."""
        needs(harness, "outages")
        if not harness.transport.pace.in_order:
            skip_unsupported("this transport does not keep the order of a batch")
        size = min(harness.transport.pace.batch_size, 200)
        for number, turns in enumerate((1, 4, 16, 64)):
            address = harness.address(number)
            await sendable_again(harness, "before", number)
            ids = [f"{turns}-{n}" for n in range(size)]
            sending = asyncio.create_task(send(harness, *(outgoing(one, address, body=bytes(2000)) for one in ids)))
            for _ in range(turns):
                await asyncio.sleep(0)
            await harness.cut()
            results = await sending
            await harness.heal()
            await sendable_again(harness, "after", number)
            found = [one.event_id for one in await harness.received(address) if one.event_id in ids]
            assert found == ids[: len(found)]
            assert {one for one, result in zip(ids, results, strict=True) if result is None} <= set(found)

    async def test_only_a_transport_that_keeps_the_order_of_a_batch_is_pipelined(
        self, harness: TransportHarness
    ) -> None:
        transport, store = harness.transport, MemoryStore()
        refused = not transport.pace.in_order or transport.pace.independent_results
        with pytest.raises(ConfigurationError, match="pipelined") if refused else nullcontext():
            Relay(
                store=store,
                transports={"tested": transport},
                destinations={"one": Destination(harness.address(), ordering="pipelined")},
                routes=[Route(to=["one"])],
            )
        await store.aclose()

    async def test_ping_reports_whether_the_transport_can_send(self, harness: TransportHarness) -> None:
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
