"""The order service: it creates orders and advances them; some payments are declined."""

from __future__ import annotations

import random
from collections.abc import Sequence

from pillarbox.ops.demo.database import OrderChange, OrderDatabase, PaymentDeclined

STATES = ("placed", "paid", "packed", "shipped")
OPEN_ORDERS = 50
MAX_CHANGES = 3
DECLINED = 0.1
"""Share of the transactions that are rolled back."""


class OrderService:
    """Writes random transactions: new orders, and the next states of open orders."""

    def __init__(self, database: OrderDatabase, rng: random.Random) -> None:
        self._database = database
        self._random = rng
        self._steps: dict[int, int] = {}
        self._last = 0
        self.committed = 0
        self.rolled_back = 0

    async def write_transaction(self) -> int:
        """Write one transaction, which may be rolled back; return the number of its events."""
        changes = [self._next(order) for order in self._orders()]
        try:
            await self._database.write(changes, declined=self._random.random() < DECLINED)
        except PaymentDeclined:
            self.rolled_back += len(changes)
        else:
            self.committed += len(changes)
            self._advance(changes)
        return len(changes)

    def _orders(self) -> list[int]:
        number = self._random.randint(1, MAX_CHANGES)
        new = [self._last + 1] if len(self._steps) < OPEN_ORDERS else []
        return self._random.sample([*self._steps, *new], k=min(number, len(self._steps) + len(new)))

    def _next(self, order: int) -> OrderChange:
        return OrderChange(order, STATES[self._steps.get(order, 0)])

    def _advance(self, changes: Sequence[OrderChange]) -> None:
        for change in changes:
            self._last = max(self._last, change.order)
            self._steps[change.order] = STATES.index(change.state) + 1
            if change.state == STATES[-1]:
                del self._steps[change.order]
