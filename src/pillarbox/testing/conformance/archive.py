"""Archive: old rows are read completely and deleted by their numbers; a row that was not read is never deleted."""

from __future__ import annotations

import pytest

from pillarbox.admin.archive import ExpiredCounts, Table
from pillarbox.admin.listing import EventDetail
from pillarbox.core.message import Status
from pillarbox.core.outcome import DELIVERED, Dead
from pillarbox.core.store import Retention
from pillarbox.testing.conformance.events import HOUR, event
from pillarbox.testing.conformance.harness import StoreHarness
from pillarbox.testing.conformance.lane_owner import Owner

of_each_table = pytest.mark.parametrize("table", ["history", "dead"])


async def _filled(harness: StoreHarness, table: Table, *event_ids: str) -> Owner:
    owner = await Owner.of(harness.store)
    await _fill(harness, owner, table, *event_ids)
    return owner


async def _fill(harness: StoreHarness, owner: Owner, table: Table, *event_ids: str) -> None:
    for event_id in event_ids:
        await harness.commit(event(event_id, destination="x"))
        await owner.settle(DELIVERED if table == "history" else Dead(error="no"), *await owner.ready(), seconds=0.5)


async def _old(harness: StoreHarness, table: Table, after: EventDetail | None = None) -> list[EventDetail]:
    return await harness.store.admin.archive.read(table, older=0, limit=100, after=after)


class ArchiveConformance:
    @of_each_table
    async def test_complete_rows_are_read_in_chunks(self, harness: StoreHarness, table: Table) -> None:
        await _filled(harness, table, "a", "b", "c")
        first = await harness.store.admin.archive.read(table, older=0, limit=2)
        rest = await harness.store.admin.archive.read(table, older=0, limit=2, after=first[-1])
        assert [row.event_id for row in (*first, *rest)] == ["a", "b", "c"]
        [a, _] = first
        status = Status.PUBLISHED if table == "history" else Status.FAILED
        assert (bytes(a.payload), a.status, a.destination) == (b"a", status, "x")
        assert a.seconds == (0.5 if table == "history" else None)
        assert a == (await harness.store.admin.events.show("a")).events[0]

    @of_each_table
    async def test_a_read_is_bounded_by_bytes_but_returns_at_least_one_row(
        self, harness: StoreHarness, table: Table
    ) -> None:
        owner = await Owner.of(harness.store)
        sizes = {"a": 1000, "b": 1000, "c": 5000, "d": 1}
        events = (event(name, "k", payload=bytes(size), destination="x") for name, size in sizes.items())
        await harness.commit(*events)
        await owner.settle(DELIVERED if table == "history" else Dead(error="no"), *await owner.ready())
        read: list[list[str]] = []
        after = None
        while rows := await harness.store.admin.archive.read(table, older=0, limit=9, after=after, max_bytes=2500):
            read.append([row.event_id for row in rows])
            after = rows[-1]
        assert read == [["a", "b"], ["c"], ["d"]]

    @of_each_table
    async def test_recent_rows_are_not_archived(self, harness: StoreHarness, table: Table) -> None:
        await _filled(harness, table, "a")
        assert await harness.store.admin.archive.read(table, older=HOUR, limit=9) == []

    @of_each_table
    async def test_only_named_rows_are_deleted(self, harness: StoreHarness, table: Table) -> None:
        owner = await _filled(harness, table, "a", "b", "c")
        a, _, c = await _old(harness, table)
        await _fill(harness, owner, table, "d")
        assert await harness.store.admin.archive.drop(table, [a, c]) == 2
        assert [row.event_id for row in await _old(harness, table)] == ["b", "d"]

    @of_each_table
    async def test_rows_that_are_deleted_already_are_not_counted(self, harness: StoreHarness, table: Table) -> None:
        await _filled(harness, table, "a", "b")
        rows = await _old(harness, table)
        assert await harness.store.admin.archive.drop(table, rows[:1]) == 1
        assert await harness.store.admin.archive.drop(table, rows) == 1
        assert await harness.store.admin.archive.drop(table, []) == 0

    @of_each_table
    async def test_a_second_delivery_of_an_id_is_another_row(self, harness: StoreHarness, table: Table) -> None:
        owner = await _filled(harness, table, "a")
        [first] = await _old(harness, table)
        await _fill(harness, owner, table, "a")
        assert await harness.store.admin.archive.drop(table, [first]) == 1
        [second] = await _old(harness, table)
        assert second.id > first.id

    @of_each_table
    async def test_old_rows_are_counted(self, harness: StoreHarness, table: Table) -> None:
        await _filled(harness, table, "a", "b")
        stale = harness.store.admin.archive.count_expired
        nothing = ExpiredCounts(0, 0, 0, 0, 0)
        assert await stale(Retention(history=0, dead=0)) == nothing._replace(**{table: 2})
        assert await stale(Retention()) == nothing
        assert await stale(Retention(history=HOUR, dead=HOUR)) == nothing

    async def test_old_inbox_records_are_counted_by_consumer(self, harness: StoreHarness) -> None:
        async with harness.transaction() as transaction:
            for consumer, event_id in (("search", "e1"), ("billing", "e1"), ("billing", "e2")):
                await harness.admit(transaction, consumer, event_id)
        assert await harness.store.admin.archive.count_expired_inbox(0) == {"billing": 2, "search": 1}
        assert await harness.store.admin.archive.count_expired_inbox(HOUR) == {}
