"""The memory transport fails as scripted, in virtual time on request."""

import asyncio

import pytest

from pillarbox.core.errors import PermanentError, RejectedError, UnavailableError
from pillarbox.core.transport import Outgoing, SendResult
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.testing.simulation import Simulation, simulate
from pillarbox.testing.waiting import eventually
from pillarbox.transports.memory import MemoryTransport

NO, NEVER, AWAY = RejectedError("no"), PermanentError("never"), UnavailableError("away")
HERE = MemoryTransport.to("here")


def batch(*ids: str) -> list[Outgoing]:
    return [outgoing(one, HERE) for one in ids]


def ids(transport: MemoryTransport) -> list[str]:
    return [one.message.event_id for one in transport.deliveries]


async def test_scripted_failures_apply_to_the_next_messages() -> None:
    transport = MemoryTransport()
    transport.fail_next(NO, times=2)
    transport.fail_next(NEVER)
    assert await transport.send(batch("a", "b", "c", "d")) == [NO, NO, NEVER, None]
    assert ids(transport) == ["d"]


async def test_rules_apply_until_they_are_removed() -> None:
    transport = MemoryTransport()
    transport.fail_when(lambda one: one.message.event_id == "a", NO)
    for _ in range(2):
        assert await transport.send(batch("a", "b")) == [NO, None]
    transport.succeed()
    assert await transport.send(batch("a", "b")) == [None, None]


async def test_the_first_matching_rule_applies() -> None:
    transport = MemoryTransport()

    def rule(one: Outgoing) -> SendResult:
        return {"a": NO, "b": NEVER}.get(one.message.event_id)

    transport.script(rule)
    transport.fail_when(lambda one: one.message.event_id in "bc", AWAY)
    assert await transport.send(batch("a", "b", "c", "d")) == [NO, NEVER, AWAY, None]


async def test_an_outage_ends_with_heal_and_keeps_the_rules() -> None:
    transport = MemoryTransport()
    transport.fail_when(lambda one: one.message.event_id == "a", NO)
    transport.outage(AWAY)
    assert await transport.send(batch("a", "b")) == [AWAY, AWAY]
    with pytest.raises(UnavailableError):
        await transport.ping()
    transport.heal()
    await transport.ping()
    assert await transport.send(batch("a", "b")) == [NO, None]


async def test_deliveries_can_be_read_by_destination() -> None:
    transport = MemoryTransport()
    await transport.send([outgoing("a", HERE), outgoing("b", transport.to("there"))])
    assert [one.message.event_id for one in transport.delivered("here")] == ["a"]
    assert transport.delivered("nowhere") == []


async def test_several_transports_can_share_one_list() -> None:
    deliveries: list[Outgoing] = []
    for one in "ab":
        await MemoryTransport(deliveries=deliveries).send(batch(one))
    assert [one.message.event_id for one in deliveries] == ["a", "b"]


async def held(transport: MemoryTransport, number: int) -> None:
    async def is_sent() -> bool:
        return transport.latch.held == number

    await eventually(is_sent)


async def test_a_closed_latch_delays_results_of_delivered_messages() -> None:
    transport = MemoryTransport()
    transport.latch.close()
    first = asyncio.create_task(transport.send(batch("a")))
    await held(transport, 1)
    assert ids(transport) == ["a"]
    transport.latch.release()
    assert await first == [None]
    second = asyncio.create_task(transport.send(batch("b")))
    await held(transport, 1)
    transport.latch.open()
    assert await second == [None]
    assert await transport.send(batch("c")) == [None]


async def test_an_outage_loses_delayed_results() -> None:
    transport = MemoryTransport()
    transport.latch.close()
    sending = asyncio.create_task(transport.send(batch("a")))
    await held(transport, 1)
    transport.outage(AWAY)
    transport.heal()
    assert await sending == [AWAY]
    assert ids(transport) == ["a"]


async def test_a_send_cancelled_at_the_latch_was_delivered() -> None:
    transport = MemoryTransport()
    transport.latch.close()
    sending = asyncio.create_task(transport.send(batch("a")))
    await held(transport, 1)
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    assert (transport.latch.held, ids(transport)) == (0, ["a"])


def test_latency_uses_the_injected_clock() -> None:
    async def scenario(simulation: Simulation) -> None:
        transport = MemoryTransport(clock=simulation.clock, latency="10s")
        sending = asyncio.create_task(transport.send(batch("a")))
        await simulation.clock.sleep(4.9)
        assert ids(transport) == []
        await simulation.clock.sleep(0.2)
        assert (ids(transport), sending.done()) == (["a"], False)
        assert await sending == [None]
        assert simulation.clock.monotonic() == 10

    simulate(scenario, seed=1)


def test_latency_can_be_random() -> None:
    async def scenario(simulation: Simulation) -> None:
        latencies = [3.0, 1.0]
        transport = MemoryTransport(clock=simulation.clock, latency=latencies.pop)
        await transport.send(batch("a"))
        await transport.send(batch("b"))
        assert simulation.clock.monotonic() == 4

    simulate(scenario, seed=1)
