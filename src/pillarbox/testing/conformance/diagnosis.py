"""Diagnosis: the store's checks, and messages with many failed attempts."""

from __future__ import annotations

from pillarbox.core.outcome import Retry
from pillarbox.testing.conformance.capability import store_without_tables
from pillarbox.testing.conformance.events import event
from pillarbox.testing.conformance.harness import StoreHarness
from pillarbox.testing.conformance.lane_owner import Owner


class DiagnosisConformance:
    async def test_every_check_that_does_not_pass_has_a_fix(self, harness: StoreHarness) -> None:
        for check in harness.store.diagnosis.checks():
            answer = await check.ask()
            assert check.name.startswith("store.")
            assert answer.message
            assert (answer.fix == "") is (answer.result == "pass"), answer

    async def test_a_schema_check_gates_the_others(self, harness: StoreHarness) -> None:
        [schema] = [check for check in harness.store.diagnosis.checks() if check.name == "store.schema"]
        assert schema.prerequisite
        assert (await schema.ask()).result == "pass"

    async def test_missing_tables_fail_the_check(self, harness: StoreHarness) -> None:
        empty = await store_without_tables(harness)
        [schema] = [check for check in empty.diagnosis.checks() if check.name == "store.schema"]
        assert (await schema.ask()).result == "fail"

    async def test_table_sizes_are_listed_largest_first(self, harness: StoreHarness) -> None:
        sizes = [part.bytes for part in (await harness.store.diagnosis.table_sizes()).parts]
        assert sizes == sorted(sizes, reverse=True)
        assert sum(sizes) > 0 or not harness.store.capabilities.survives_restart

    async def test_a_new_store_has_no_messages_with_many_attempts(self, harness: StoreHarness) -> None:
        await harness.commit(event("a"))
        assert await harness.store.diagnosis.retried() == (0, "", "")

    async def test_messages_with_many_attempts_are_counted_with_the_most_frequent_error(
        self, harness: StoreHarness
    ) -> None:
        owner = await Owner.of(harness.store)
        errors = {"a": "no queue for a", "b": "no queue for b", "c": "too large", "d": "no queue for d"}
        await harness.commit(*(event(name) for name in errors))
        for _ in range(2):
            for message in [*await owner.ready(), *await owner.due()]:
                await owner.settle(Retry(delay=0, error=errors[message.event_id]), message)
        for message in await owner.due():
            if message.event_id == "d":
                await owner.settle(Retry(delay=0, error=errors["d"]), message)
        assert await harness.store.diagnosis.retried(1) == (4, "no queue for …", "a")
        assert await harness.store.diagnosis.retried(2) == (1, "no queue for …", "d")
        assert await harness.store.diagnosis.retried(3) == (0, "", "")
