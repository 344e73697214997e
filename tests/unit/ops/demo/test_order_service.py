"""The order service of the demo: orders pass their states in sequence, and some transactions are rolled back."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence

from pillarbox.ops.demo.database import OrderChange, PaymentDeclined
from pillarbox.ops.demo.order_service import OPEN_ORDERS, STATES, OrderService
from pillarbox.ops.demo.verification import OrderStep


class MemoryOrders:
    """Keeps orders in memory."""

    def __init__(self) -> None:
        self.steps: defaultdict[int, list[str]] = defaultdict(list)

    async def open(self) -> None: ...

    async def write(self, changes: Sequence[OrderChange], *, declined: bool) -> None:
        if declined:
            raise PaymentDeclined
        for change in changes:
            self.steps[change.order].append(change.state)

    async def read(self) -> list[OrderStep]:
        return []

    async def remove(self) -> None: ...

    async def aclose(self) -> None: ...


async def test_orders_pass_their_states_in_sequence_and_some_are_declined() -> None:
    database = MemoryOrders()
    service = OrderService(database, random.Random(7))
    written = sum([await service.write_transaction() for _ in range(1000)])
    assert service.committed == sum(len(steps) for steps in database.steps.values())
    assert 0 < service.rolled_back == written - service.committed
    assert all(tuple(steps) == STATES[: len(steps)] for steps in database.steps.values())
    unfinished = [order for order, steps in database.steps.items() if len(steps) < len(STATES)]
    assert len(unfinished) <= OPEN_ORDERS < len(database.steps)
