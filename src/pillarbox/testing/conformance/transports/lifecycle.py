"""Lifecycle: ping, cancellation, close, and the content of errors."""

from __future__ import annotations

import asyncio
import traceback
from contextlib import suppress

import pytest

from pillarbox.core.errors import SendError, UnavailableError
from pillarbox.testing.conformance.transports.harness import TransportHarness
from pillarbox.testing.conformance.transports.sending import BOUND, arrived_ids, outgoing, send, try_to_send
from pillarbox.testing.waiting import eventually

CANARY = b"only-the-receiver-may-read-this"


class LifecycleConformance:
    async def test_ping_succeeds_when_connected_and_sends_nothing(self, harness: TransportHarness) -> None:
        address = harness.address()
        async with asyncio.timeout(BOUND):
            await harness.transport.ping()
            await harness.transport.ping()
        assert await send(harness, outgoing("a", address)) == [None]
        assert await arrived_ids(harness, address, 1) == ["a"]

    async def test_closing_twice_is_fine(self, harness: TransportHarness) -> None:
        await send(harness, outgoing("a", harness.address()))
        async with asyncio.timeout(BOUND):
            await harness.transport.aclose()
            await harness.transport.aclose()

    async def test_an_unused_transport_can_be_closed(self, harness: TransportHarness) -> None:
        async with asyncio.timeout(BOUND):
            await harness.transport.aclose()

    async def test_sending_after_the_close_is_unavailable(self, harness: TransportHarness) -> None:
        address = harness.address()
        await send(harness, outgoing("a", address))
        await harness.transport.aclose()
        [result] = await try_to_send(harness, outgoing("b", address))
        assert isinstance(result, UnavailableError)
        assert await arrived_ids(harness, address, 1) == ["a"]

    async def test_ping_after_the_close_is_unavailable(self, harness: TransportHarness) -> None:
        await harness.transport.aclose()
        async with asyncio.timeout(BOUND):
            with pytest.raises(UnavailableError):
                await harness.transport.ping()

    @pytest.mark.parametrize("turns", [0, 1, 2, 3, 5, 8])
    async def test_messages_in_flight_during_the_close_have_a_result(
        self, harness: TransportHarness, turns: int
    ) -> None:
        address, size = harness.address(), harness.transport.pace.batch_size
        batch = [outgoing(f"e{n}", address) for n in range(size)]
        sending = asyncio.create_task(try_to_send(harness, *batch))
        await pass_turns(turns)
        async with asyncio.timeout(BOUND):
            await harness.transport.aclose()
        results = await sending
        assert len(results) == size
        assert all(result is None or isinstance(result, UnavailableError) for result in results)
        accepted = {one.message.event_id for one, result in zip(batch, results, strict=True) if result is None}
        assert accepted <= set(await arrived_ids(harness, address, len(accepted)) if accepted else [])

    @pytest.mark.parametrize("turns", [0, 1, 2, 3, 5, 8])
    async def test_a_transport_works_after_a_cancelled_send(self, harness: TransportHarness, turns: int) -> None:
        address, other, size = harness.address(0), harness.address(1), min(harness.transport.pace.batch_size, 50)
        await send(harness, outgoing("warm", other))
        before = len(asyncio.all_tasks())
        for attempt in range(3):
            cancelled = asyncio.create_task(send(harness, *(outgoing(f"{attempt}-{n}", address) for n in range(size))))
            await pass_turns(turns)
            cancelled.cancel()
            with suppress(asyncio.CancelledError):
                await cancelled
            # The results must be those of this send, not of the cancelled one.
            assert await send(harness, *(outgoing(f"good{attempt}-{n}", other) for n in range(size))) == [None] * size
        found = await arrived_ids(harness, other, 1 + 3 * size)
        assert sorted(found) == sorted(["warm", *(f"good{a}-{n}" for a in range(3) for n in range(size))])

        async def nothing_left_over() -> bool:
            return len(asyncio.all_tasks()) <= before

        await eventually(nothing_left_over, within=BOUND)

    async def test_errors_show_neither_secrets_nor_bodies(self, harness: TransportHarness) -> None:
        errors = await every_error(harness)
        shown = "\n".join([repr(harness.transport), *(printed(error) for error in errors)])
        assert [secret for secret in (CANARY.decode(), *harness.secrets) if secret in shown] == []

    async def test_errors_have_a_message(self, harness: TransportHarness) -> None:
        for error in await every_error(harness):
            assert len(str(error)) > 10


async def pass_turns(number: int) -> None:
    """Let the event loop run that many iterations."""
    for _ in range(number):
        await asyncio.sleep(0)


async def every_error(harness: TransportHarness) -> list[SendError]:
    """Return one error of each kind that this transport can raise; it is closed afterwards."""
    capabilities, good = harness.capabilities, outgoing("a", harness.address(), body=CANARY)
    results: list[SendError | None] = []
    if capabilities.routes:
        results += await send(harness, outgoing("b", harness.unroutable(), body=CANARY))
    if capabilities.refuses:
        results += await send(harness, harness.spoiled(good))
    if capabilities.outages:
        await harness.cut()
        results += await send(harness, good)
        results += await _pinged(harness)
        await harness.heal()
    await harness.transport.aclose()
    results += await try_to_send(harness, good)
    results += await _pinged(harness)
    return [result for result in results if result is not None]


async def _pinged(harness: TransportHarness) -> list[UnavailableError]:
    try:
        async with asyncio.timeout(BOUND):
            await harness.transport.ping()
    except UnavailableError as error:
        return [error]
    return []


def printed(error: SendError) -> str:
    """Return everything that a log could show of an error, including its causes."""
    return repr(error) + "".join(traceback.format_exception(error))
