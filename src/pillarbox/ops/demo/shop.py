"""The order service: customers place orders and follow them up, some are declined. It knows nothing of any relay."""

from __future__ import annotations

import random
from collections.abc import Sequence

from pillarbox.ops.demo.books import Books, Change, Declined

STATES = ("placed", "paid", "packed", "shipped")
OPEN_ORDERS = 50
MOST_AT_ONCE = 3
DECLINED = 0.1


class Shop:
    """Customers, by chance: new orders, and the next steps of those that are under way."""

    def __init__(self, books: Books, chance: random.Random) -> None:
        self._books = books
        self._chance = chance
        self._steps: dict[int, int] = {}
        self._last = 0
        self.committed = 0
        self.rolled_back = 0

    async def trade(self) -> int:
        """One transaction; returns the number of events it was about."""
        changes = [self._next(order) for order in self._orders()]
        try:
            await self._books.write(changes, declined=self._chance.random() < DECLINED)
        except Declined:
            self.rolled_back += len(changes)
        else:
            self.committed += len(changes)
            self._remember(changes)
        return len(changes)

    def _orders(self) -> list[int]:
        number = self._chance.randint(1, MOST_AT_ONCE)
        new = [self._last + 1] if len(self._steps) < OPEN_ORDERS else []
        return self._chance.sample([*self._steps, *new], k=min(number, len(self._steps) + len(new)))

    def _next(self, order: int) -> Change:
        return Change(order, STATES[self._steps.get(order, 0)])

    def _remember(self, changes: Sequence[Change]) -> None:
        for change in changes:
            self._last = max(self._last, change.order)
            self._steps[change.order] = STATES.index(change.state) + 1
            if change.state == STATES[-1]:
                del self._steps[change.order]
