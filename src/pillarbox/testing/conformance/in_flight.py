"""In flight: what operators do while a message is being sent affects neither another row nor the send."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import get_args

import pytest

from pillarbox.admin.requests import Action
from pillarbox.core.lane import Settled
from pillarbox.core.message import Held, Message
from pillarbox.core.outcome import DELIVERED, Dead, Retry
from pillarbox.testing.conformance.capability import needing
from pillarbox.testing.conformance.events import HOUR, event
from pillarbox.testing.conformance.harness import StoreHarness
from pillarbox.testing.conformance.lane_owner import Owner, ids
from pillarbox.testing.conformance.listings import dead_letters, find_event

STALE_WRITES: dict[str, Callable[[Owner, Message], Awaitable[Settled]]] = {
    "delivered": lambda owner, m: owner.settle(DELIVERED, m),
    "delivered elsewhere": lambda owner, m: owner.settle(DELIVERED, m, to="y"),
    "dead": lambda owner, m: owner.settle(Dead(error="no"), m),
    "blocked": lambda owner, m: owner.settle(Dead(error="no", block=True), m),
    "retry": lambda owner, m: owner.settle(Retry(delay=HOUR, error="no"), m),
    "retry elsewhere": lambda owner, m: owner.settle(Retry(delay=HOUR, error="no"), m, to="y"),
    "waiting": lambda owner, m: owner.hold(Held.WAITING, m),
    "parked elsewhere": lambda owner, m: owner.hold(Held.PARKED, m, to="y"),
    "noted": lambda owner, m: owner.count_attempt("no", m),
    "split": lambda owner, m: owner.split(m, "x", "y"),
    "split elsewhere": lambda owner, m: owner.split(m, "y", "z"),
}


@needing("listings", "requests")
class InFlightConformance:
    @pytest.mark.parametrize("history", [True, False])
    @pytest.mark.parametrize("write", STALE_WRITES)
    async def test_a_decision_on_a_send_does_not_change_a_dead_letter_edited_meanwhile(
        self, harness: StoreHarness, write: str, history: bool
    ) -> None:
        owner = await Owner.of(await harness.second_store(history=history))
        await harness.commit(event("a", "k", destination="x", payload=b"old"))
        sent = await owner.ready()
        await harness.store.admin.requests.add("dead_letter", [("a", "x")])
        assert await owner.execute_requests() == 1
        [dead_letter] = await dead_letters(harness.store)
        assert await harness.store.admin.dead_letters.edit(dead_letter.id, payload=b"new")
        edited = await owner.ready()
        assert (await STALE_WRITES[write](owner, *sent)).count == 0
        assert await owner.ready() == edited
        assert [bytes(message.payload) for message in edited] == [b"new"]
        [row] = await find_event(harness.store, "a")
        assert row.status == "PENDING"
        assert (await owner.settle(DELIVERED, *edited)).count == 1

    @pytest.mark.parametrize("action", get_args(Action))
    async def test_a_request_waits_for_the_decision(self, harness: StoreHarness, action: Action) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("delivered", "k"), event("rejected", "j"))
        before = await owner.ready()
        in_flight = [message.position for message in before]
        await harness.store.admin.requests.add(action, [("delivered", ""), ("rejected", "")], delay=HOUR, by="ada")
        done, deferred = await harness.store.writes.execute_requests(owner.epochs, in_flight=in_flight)
        assert (done, sorted(deferred)) == (0, sorted(in_flight))
        assert await owner.ready() == before
        assert len((await harness.store.admin.events.show("delivered")).requests) == 1
        delivered, rejected = before
        await owner.settle(DELIVERED, delivered)
        await owner.settle(Retry(delay=HOUR, error="no"), rejected)
        assert await owner.execute_requests() == 2

    async def test_requests_for_other_messages_are_executed(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(*(event(name, name) for name in ("a", "b", "c", "d")))
        in_flight = [message.position for message in await owner.ready() if message.event_id in ("a", "b")]
        await harness.store.admin.requests.add("discard", [(name, "") for name in ("a", "b", "c", "d")])
        done, deferred = await harness.store.writes.execute_requests(owner.epochs, limit=1, in_flight=in_flight)
        assert (done, sorted(deferred)) == (1, sorted(in_flight))
        assert sorted(ids(await owner.ready())) == ["a", "b", "d"]

    async def test_a_copy_for_another_destination_is_not_in_flight(self, harness: StoreHarness) -> None:
        owner = await Owner.of(harness.store)
        await harness.commit(event("a", "k"))
        [whole] = await owner.ready()
        await owner.split(whole, "x", "y")
        in_flight = [message.position for message in await owner.ready() if message.destination == "x"]
        await harness.store.admin.requests.add("discard", [("a", "x"), ("a", "y")])
        done, deferred = await harness.store.writes.execute_requests(owner.epochs, in_flight=in_flight)
        assert (done, deferred) == (1, in_flight)
        assert [message.destination for message in await owner.ready()] == ["x"]
