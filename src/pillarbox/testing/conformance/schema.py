"""Schema: migrations are applied once, however often and by whichever process."""

from __future__ import annotations

import asyncio

import pytest

from pillarbox.core.errors import SchemaError
from pillarbox.testing.conformance.capability import store_without_tables
from pillarbox.testing.conformance.events import event
from pillarbox.testing.conformance.harness import StoreHarness
from pillarbox.testing.conformance.lane_owner import Owner, ids, join
from pillarbox.testing.conformance.listings import find_event


class SchemaConformance:
    async def test_a_store_with_its_tables_is_up_to_date(self, harness: StoreHarness) -> None:
        await harness.store.schema.check()
        status = await harness.store.schema.status()
        assert status.ok
        assert (status.version, status.pending, status.problems) == (status.required, (), ())

    async def test_applying_again_does_nothing(self, harness: StoreHarness) -> None:
        await harness.commit(event("a"))
        assert await harness.store.schema.apply() == []
        owner = await Owner.of(harness.store)
        assert ids(await owner.ready()) == ["a"]

    async def test_an_empty_database_reports_missing_migrations(self, harness: StoreHarness) -> None:
        empty = await store_without_tables(harness)
        status = await empty.schema.status()
        assert not status.ok
        assert status.version == 0
        assert status.pending != ()
        with pytest.raises(SchemaError):
            await empty.schema.check()

    async def test_a_call_on_an_empty_database_reports_missing_tables(self, harness: StoreHarness) -> None:
        empty = await store_without_tables(harness)
        with pytest.raises(SchemaError):
            await join(empty)
        with pytest.raises(SchemaError):
            await find_event(empty, "a")

    async def test_applying_brings_an_empty_database_up_to_date(self, harness: StoreHarness) -> None:
        empty = await store_without_tables(harness)
        wanted = (await empty.schema.status()).pending
        assert await empty.schema.apply() == list(wanted)
        await empty.schema.check()
        assert (await Owner.of(empty)).lanes == list(range(empty.lanes.count))

    async def test_the_script_contains_all_statements_of_apply(self, harness: StoreHarness) -> None:
        empty = await store_without_tables(harness)
        assert "CREATE TABLE" in empty.schema.sql()

    async def test_the_scripts_for_other_tools_are_the_pending_migrations(self, harness: StoreHarness) -> None:
        empty = await store_without_tables(harness)
        status = await empty.schema.status()
        scripts = empty.schema.scripts()
        assert tuple(script.name for script in scripts) == status.pending
        assert all(script.statements for script in scripts)
        assert empty.schema.scripts(since=status.required) == []
        undone = empty.schema.downgrades(to=0)
        assert [script.version for script in undone] == [script.version for script in reversed(scripts)]

    async def test_concurrent_applies_run_each_migration_once(self, harness: StoreHarness) -> None:
        empty = await store_without_tables(harness)
        wanted = (await empty.schema.status()).pending
        ran = await asyncio.gather(*(empty.schema.apply() for _ in range(3)))
        assert sorted(name for names in ran for name in names) == sorted(wanted)
        await empty.schema.check()

    async def test_two_stores_can_apply_concurrently(self, harness: StoreHarness) -> None:
        second = await harness.second_store()
        for ran in await asyncio.gather(harness.store.schema.apply(), second.schema.apply()):
            assert ran == []
        assert (await second.schema.status()).ok

    async def test_closing_twice_is_fine(self, harness: StoreHarness) -> None:
        second = await harness.second_store()
        await second.lanes.renew("unknown", lease=0)
        await second.aclose()
        await second.aclose()
        await harness.store.schema.check()
