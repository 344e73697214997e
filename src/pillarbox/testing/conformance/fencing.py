"""Fencing: a stale epoch writes nothing, and of a settlement and a takeover only one wins."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from pillarbox.core.fetch import Ready
from pillarbox.core.lane import Settled
from pillarbox.core.message import Held, Message
from pillarbox.core.outcome import DELIVERED, Dead, Retry
from pillarbox.testing.conformance.capability import needing, needs
from pillarbox.testing.conformance.events import event
from pillarbox.testing.conformance.harness import StoreHarness
from pillarbox.testing.conformance.lane_owner import Owner, ids
from pillarbox.testing.conformance.listings import dead_letters, find_event

Write = Callable[[Owner, Message], Awaitable[Settled]]

WRITES: dict[str, Write] = {
    "delivered": lambda owner, m: owner.settle(DELIVERED, m),
    "retry": lambda owner, m: owner.settle(Retry(delay=0, error="x"), m),
    "dead": lambda owner, m: owner.settle(Dead(error="x"), m),
    "blocked": lambda owner, m: owner.settle(Dead(error="x", block=True), m),
    "waiting": lambda owner, m: owner.hold(Held.WAITING, m),
    "parked": lambda owner, m: owner.hold(Held.PARKED, m, to="orders"),
    "split": lambda owner, m: owner.split(m, "x", "y"),
    "deferral": lambda owner, m: owner.count_attempt("x", m),
    "attempt": lambda owner, m: owner.count_attempt("x", m, counted=True),
}


class FencingConformance:
    @pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
    async def test_a_stale_epoch_writes_nothing(self, harness: StoreHarness, write: Write) -> None:
        await harness.commit(event("a", "k"))
        stale = await Owner.of(harness.store)
        [message] = await stale.ready()
        owner = await stale.taken_over(await harness.second_store())

        settled = await write(stale, message)

        assert settled.count == 0
        assert message.lane in settled.lost
        assert await owner.ready() == [message]
        [row] = await find_event(harness.store, "a")
        assert (row.status, row.retry_count, row.last_error) == ("PENDING", 0, None)
        assert await dead_letters(harness.store) == []

    @pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
    async def test_a_write_for_a_lane_without_an_epoch_writes_nothing(
        self, harness: StoreHarness, write: Write
    ) -> None:
        await harness.commit(event("a", "k"))
        owner = await Owner.of(harness.store)
        [message] = await owner.ready()
        settled = await write(Owner(harness.store, owner.relay, []), message)
        assert settled.count == 0
        assert message.lane in settled.lost
        assert await owner.ready() == [message]

    @pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
    async def test_the_current_epoch_writes_and_reports_it(self, harness: StoreHarness, write: Write) -> None:
        await harness.commit(event("a", "k"))
        owner = await Owner.of(harness.store)
        [message] = await owner.ready()
        settled = await write(owner, message)
        assert settled.count >= 1
        assert settled.lost == frozenset()

    @needing("requests")
    async def test_a_stale_epoch_executes_no_request(self, harness: StoreHarness) -> None:
        await harness.commit(event("a", "k"))
        stale = await Owner.of(harness.store)
        owner = await stale.taken_over()
        await harness.store.admin.requests.add("discard", [("a", "")])
        assert await stale.execute_requests() == 0
        assert ids(await owner.ready()) == ["a"]
        assert await owner.execute_requests() == 1
        assert await owner.ready() == []

    async def test_one_lost_lane_does_not_stop_the_others(self, harness: StoreHarness) -> None:
        needs(harness, "several_lanes")
        await harness.commit(*(event(f"e{n}") for n in range(50)))
        owner = await Owner.of(harness.store)
        messages = await owner.ready()
        lost = messages[0].lane
        await harness.store.lanes.release(owner.relay, {lost: owner.epochs[lost]})
        other = await Owner.of(harness.store)
        assert other.lanes == [lost]

        settled = await owner.settle(DELIVERED, *messages)

        mine = [m for m in messages if m.lane != lost]
        assert settled.count == len(mine)
        assert settled.lost == {lost}
        assert ids(await other.ready()) == ids([m for m in messages if m.lane == lost])

    async def test_a_settlement_and_a_takeover_never_both_win(self, harness: StoreHarness) -> None:
        second = await harness.second_store()
        for turn in range(8):
            await harness.commit(*(event(f"{turn}-{n}") for n in range(60)))
            owner = await Owner.of(harness.store)
            messages = await owner.ready()
            assert len(messages) == 60
            successor = await Owner.of(second, limit=0)
            await owner.expire()
            await _settle_against_takeover(owner, successor, messages, settle_first=turn % 2 == 0)
            await successor.settle(DELIVERED, *await successor.ready())
            await second.lanes.release(successor.relay)

    async def test_of_two_concurrent_owners_only_the_current_one_writes(self, harness: StoreHarness) -> None:
        second = await harness.second_store()
        for turn in range(5):
            await harness.commit(*(event(f"{turn}-{n}") for n in range(40)))
            stale = await Owner.of(harness.store)
            messages = await stale.ready()
            owner = await stale.taken_over(second)
            old, new = await asyncio.gather(
                stale.settle(Dead(error="old"), *messages),
                owner.settle(Retry(delay=0, error="new"), *messages),
            )
            assert (old.count, new.count) == (0, 40)
            assert await dead_letters(harness.store) == []
            waiting = await owner.due()
            assert {m.attempts for m in waiting} == {1}
            await owner.settle(DELIVERED, *waiting)
            await second.lanes.release(owner.relay)


async def _settle_against_takeover(
    owner: Owner, successor: Owner, messages: list[Message], *, settle_first: bool
) -> None:
    async def take() -> None:
        await successor.acquire(successor.store.lanes.count)

    async def settle() -> Settled:
        return await owner.settle(DELIVERED, *messages)

    if settle_first:
        settled, _ = await asyncio.gather(settle(), take())
    else:
        _, settled = await asyncio.gather(take(), settle())
    while await successor.acquire(successor.store.lanes.count):
        pass
    left = await successor.store.messages.fetch(Ready(lanes=successor.lanes))
    assert sorted(successor.lanes) == list(range(successor.store.lanes.count))
    gone = {m.event_id for m in messages} - set(ids(left))
    assert gone == {m.event_id for m in messages if m.lane not in settled.lost}
    assert settled.count == len(gone)
    assert {m.lane for m in left} <= settled.lost
