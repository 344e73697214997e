"""The demo's customers: every order takes its steps in turn, and what was declined did not happen."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence

from pillarbox.ops.demo.books import Change, Declined
from pillarbox.ops.demo.shop import OPEN_ORDERS, STATES, Shop
from pillarbox.ops.demo.verdict import Step


class PaperBooks:
    """Books without a database."""

    def __init__(self) -> None:
        self.steps: defaultdict[int, list[str]] = defaultdict(list)

    async def open(self) -> None: ...

    async def write(self, changes: Sequence[Change], *, declined: bool) -> None:
        if declined:
            raise Declined
        for change in changes:
            self.steps[change.order].append(change.state)

    async def read(self) -> list[Step]:
        return []

    async def remove(self) -> None: ...

    async def aclose(self) -> None: ...


async def test_orders_take_their_steps_in_turn_and_some_are_declined() -> None:
    books = PaperBooks()
    shop = Shop(books, random.Random(7))
    tried = sum([await shop.trade() for _ in range(1000)])
    assert shop.committed == sum(len(steps) for steps in books.steps.values())
    assert 0 < shop.rolled_back == tried - shop.committed
    assert all(tuple(steps) == STATES[: len(steps)] for steps in books.steps.values())
    unfinished = [order for order, steps in books.steps.items() if len(steps) < len(STATES)]
    assert len(unfinished) <= OPEN_ORDERS < len(books.steps)
