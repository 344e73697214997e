"""Events that are delivered while an aggregate is erased."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from pillarbox import Event, Outbox
from pillarbox.admin.admin import AdminStore
from pillarbox.core.outcome import DELIVERED, Dead, Outcome
from pillarbox.ops import erasure
from pillarbox.ops.erasure import PASSES, Erased
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.testing.conformance.lane_owner import Owner

CUSTOMER = "CUSTOMER:42"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[AdminStore]:
    """A store with one pending event of the customer."""
    store = SqliteStore(tmp_path / "pillarbox.db")
    await store.schema.apply()
    with closing(sqlite3.connect(tmp_path / "pillarbox.db")) as connection, connection:
        Outbox().record(
            connection, Event("customer.changed", {"name": "Ada"}, aggregate_type="CUSTOMER", aggregate_id="42")
        )
    yield store
    await store.aclose()


async def settle(store: AdminStore, outcome: Outcome, *destinations: str) -> None:
    """Settle what is pending, as a relay without operator requests does."""
    owner = await Owner.of(store)
    for message in await owner.ready():
        await owner.split(message, *destinations)
    await owner.settle(outcome, *await owner.ready())
    await store.lanes.release(owner.relay)


class SettledDuringPass:
    """Settles the pending events when the given pass asks whether a relay is running."""

    def __init__(self, number: int, outcome: Outcome = DELIVERED, *destinations: str) -> None:
        self.number = number
        self.outcome = outcome
        self.destinations = destinations or ("crm",)
        self.passes = 0

    async def __call__(self, store: AdminStore) -> bool:
        self.passes += 1
        if self.passes == self.number:
            await settle(store, self.outcome, *self.destinations)
        return False


def settle_during(monkeypatch: pytest.MonkeyPatch, settled: SettledDuringPass) -> None:
    monkeypatch.setattr("pillarbox.ops.operator_requests.has_running_relay", settled)


async def erase(store: AdminStore) -> Erased:
    return await erasure.erase(store, CUSTOMER, await erasure.find(store, CUSTOMER), by="ada")


@pytest.mark.parametrize("number", range(1, PASSES + 1))
async def test_an_event_that_is_delivered_during_any_pass_is_erased_and_counted_once(
    store: AdminStore, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    settle_during(monkeypatch, SettledDuringPass(number))
    assert await erase(store) == Erased(history=1)
    assert not await erasure.find(store, CUSTOMER)


@pytest.mark.parametrize("number", range(1, PASSES + 1))
async def test_an_event_that_is_dead_lettered_during_any_pass_is_erased_and_counted_once(
    store: AdminStore, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    settle_during(monkeypatch, SettledDuringPass(number, Dead(error="no")))
    assert await erase(store) == Erased(dead_letters=1)
    assert not await erasure.find(store, CUSTOMER)


async def test_an_event_that_is_routed_and_delivered_meanwhile_counts_once_for_each_destination(
    store: AdminStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle_during(monkeypatch, SettledDuringPass(1, DELIVERED, "crm", "mail"))
    assert await erase(store) == Erased(history=2)


async def test_what_is_found_holds_no_content_in_memory(store: AdminStore) -> None:
    [pending] = (await erasure.find(store, CUSTOMER)).pending
    assert (pending.payload, pending.headers) == (b"", {})


async def test_what_no_relay_deletes_is_left(store: AdminStore) -> None:
    assert await erase(store) == Erased(requested=1)
    assert len((await erasure.find(store, CUSTOMER)).pending) == 1


async def test_an_event_that_its_relay_deletes_counts_as_pending(
    store: AdminStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def execute(store: AdminStore) -> bool:
        owner = await Owner.of(store)
        await owner.execute_requests()
        await store.lanes.release(owner.relay)
        return False

    monkeypatch.setattr("pillarbox.ops.operator_requests.has_running_relay", execute)
    assert await erase(store) == Erased(pending=1)
