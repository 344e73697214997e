"""Keys that people ask about: those that stand still, and those with the most to do."""

from __future__ import annotations

from pillarbox.core.message import Held
from pillarbox.core.outcome import Dead
from pillarbox.testing.conformance.events import event
from pillarbox.testing.conformance.harness import StoreHarness
from pillarbox.testing.conformance.owner import Owner


class KeysConformance:
    async def test_a_blocked_key_tells_its_head_and_who_waits(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("head", key="k"), event("second", key="k"), event("other", key="free"))
        head, second, _ = await owner.ready()
        await owner.settle(Dead(error="refused", block=True), head, to="orders")
        await owner.hold(Held.BEHIND, second)
        [blocked] = await harness.store.keys.blocked()
        assert (blocked.key, blocked.destination, blocked.event_id, blocked.error, blocked.behind) == (
            "k",
            "orders",
            "head",
            "refused",
            1,
        )

    async def test_no_more_than_asked_for(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(*(event(f"e{n}", key=f"k{n}") for n in range(3)))
        await owner.settle(Dead(error="refused", block=True), *await owner.ready())
        assert len(await harness.store.keys.blocked(limit=2)) == 2

    async def test_the_busiest_keys_come_first(self, harness: StoreHarness) -> None:
        await harness.commit(
            *(event(f"a{n}", key="a") for n in range(3)), *(event(f"b{n}", key="b") for n in range(2)), event("none")
        )
        assert await harness.store.keys.hot() == [("a", 3), ("b", 2)]
        assert await harness.store.keys.hot(limit=1) == [("a", 3)]

    async def test_a_head_goes_to_the_dead_letters_when_a_person_wants_it(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("head", key="k"))
        await owner.settle(Dead(error="refused", block=True), *await owner.ready(), to="orders")
        await harness.store.people.ask("bury", "head", "orders", by="ann")
        assert await harness.store.writes.carry_out(owner.epochs) == 1
        [letter] = await harness.store.people.dead()
        assert (letter.event_id, letter.destination, letter.error) == ("head", "orders", "refused")
        assert await harness.store.keys.blocked() == []
