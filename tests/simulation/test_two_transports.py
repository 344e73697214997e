"""One relay with two brokers, one of which is down for a minute of virtual time: the other one makes progress."""

from __future__ import annotations

import pytest

from pillarbox import Destination, Event, Route
from pillarbox.core.transport import Outgoing
from pillarbox.testing.simulation import Simulation, simulate
from pillarbox.transports.memory import MemoryAddress, MemoryTransport
from tests.simulation.stage import Stage, ids

OUTAGE = 60
"""Seconds."""
EACH_SECOND = 20
KEYS = 5
SOON = 1.0
"""Seconds within which the broker that is up receives an event."""
FLOWS_WITHIN = 10.0
"""Seconds after the outage within which the other one has received everything, the sends that hang included."""


def first_arrivals(deliveries: list[Outgoing], key: int) -> list[int]:
    numbers = [int(one) for one in dict.fromkeys(ids(deliveries))]
    return [number for number in numbers if number % KEYS == key]


@pytest.mark.parametrize("fault", ["refuses", "hangs"])
@pytest.mark.parametrize("seed", range(3))
def test_a_broker_that_is_down_for_a_minute_does_not_hold_up_another(fault: str, seed: int) -> None:
    async def scenario(simulation: Simulation) -> None:
        stage = Stage(simulation)
        up, down = (MemoryTransport(clock=simulation.clock, latency="5ms") for _ in range(2))
        recorded = 0

        def record() -> None:
            nonlocal recorded
            numbers = range(recorded, recorded + EACH_SECOND)
            stage.record(*(Event("a", {}, event_id=f"{number}", key=f"k{number % KEYS}") for number in numbers))
            recorded += EACH_SECOND

        async with stage.running(
            transports={"up": up, "down": down},
            destinations={name: Destination(MemoryAddress(transport=name, name=name)) for name in ("up", "down")},
            routes=[Route(to=["up", "down"])],
        ):
            record()
            await stage.until(lambda: len(up.deliveries) == len(down.deliveries) == recorded, within=SOON)
            down.outage() if fault == "refuses" else down.latch.close()
            began = stage.now
            while stage.now < began + OUTAGE:
                record()
                await stage.until(lambda: len(up.deliveries) == recorded, within=SOON)
                await stage.rest(1)
            assert len(set(ids(down.deliveries))) < recorded
            down.heal() if fault == "refuses" else down.latch.open()
            await stage.until(lambda: len(set(ids(down.deliveries))) == recorded, within=FLOWS_WITHIN)
            await stage.until(lambda: not stage.store._tables.waiting, within=FLOWS_WITHIN)
        assert len(up.deliveries) == recorded
        for transport in (up, down):
            for key in range(KEYS):
                assert first_arrivals(transport.deliveries, key) == list(range(key, recorded, KEYS))

    simulate(scenario, seed=seed)
