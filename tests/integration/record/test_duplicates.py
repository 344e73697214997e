"""A duplicate id is an error that names it, or is ignored on request."""

import pytest

from pillarbox import DuplicateEventError, Event, Outbox
from tests.integration.record.conftest import EventIds
from tests.integration.record.way import Way
from tests.integration.record.ways import EVERY

pytestmark = pytest.mark.parametrize(
    ("way", "database"),
    EVERY,
    indirect=["database"],
    ids=str,
)

ONCE = Event("order.placed", {"id": 1}, event_id="evt-001")
OTHER = Event("order.placed", {"id": 2}, event_id="evt-002")


async def test_a_duplicate_id_is_an_error_with_its_cause(way: Way, database: str, committed: EventIds) -> None:
    async with way.transaction(database) as connection:
        await way.record(Outbox(), connection, ONCE)
    with pytest.raises(DuplicateEventError, match=r"evt-001 is in the outbox already") as caught:
        async with way.transaction(database) as connection:
            await way.record(Outbox(), connection, ONCE)
    assert caught.value.field == "event_id"
    assert caught.value.__cause__ is not None
    assert committed() == ["evt-001"]


async def test_after_a_duplicate_the_savepoint_can_be_rolled_back(way: Way, database: str, committed: EventIds) -> None:
    async with way.transaction(database) as connection:
        await way.record(Outbox(), connection, ONCE)
        # PostgreSQL names the duplicate.
        named = "event evt-001 is" if database.startswith("postgresql://") else "one of the events evt-002, evt-001 is"
        with pytest.raises(DuplicateEventError, match=named):
            async with way.savepoint(connection):
                await way.record(Outbox(), connection, OTHER, ONCE)
        await way.record(Outbox(), connection, Event("order.paid", {}, event_id="evt-003"))
    assert committed() == ["evt-001", "evt-003"]


async def test_ignored_duplicates_do_not_affect_other_events(way: Way, database: str, committed: EventIds) -> None:
    outbox = Outbox(duplicate="ignore")
    async with way.transaction(database) as connection:
        await way.record(outbox, connection, ONCE)
        assert await way.record(outbox, connection, ONCE, OTHER, OTHER) == ["evt-001", "evt-002", "evt-002"]
    assert committed() == ["evt-001", "evt-002"]


async def test_the_same_id_for_another_destination_is_not_a_duplicate(
    way: Way, database: str, committed: EventIds
) -> None:
    async with way.transaction(database) as connection:
        for destination in ("", "billing", "mail"):
            event = Event("order.placed", {}, event_id="evt-001", destination=destination)
            await way.record(Outbox(), connection, event)
    assert committed() == ["evt-001"] * 3
