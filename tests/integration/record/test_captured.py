"""The captured outbox reads through the caller's connection: its uncommitted events, and none that is rolled back."""

from typing import Any

import pytest

from pillarbox import (
    ConfigurationError,
    Event,
    HandlerContext,
    Handlers,
    Outbox,
    ReceivedEvent,
    RecordError,
    SchemaError,
)
from pillarbox.table_names import TableNames
from pillarbox.testing import CapturedOutbox, MemoryRelay, RecordedEvents
from tests.integration.record.way import Way
from tests.integration.record.ways import EVERY

pytestmark = pytest.mark.parametrize(("way", "database"), EVERY, indirect=["database"], ids=str)


class Undo(Exception):
    pass


async def read(way: Way, captured: CapturedOutbox, connection: Any) -> RecordedEvents:
    return await captured.aread(connection) if way.awaited else captured.read(connection)


async def test_rolled_back_events_are_not_recorded(way: Way, database: str, captured_outbox: CapturedOutbox) -> None:
    async with way.transaction(database) as connection:
        await way.record(Outbox(), connection, Event("kept", {"id": 1}, event_id='it\'s "1"'))
        with pytest.raises(Undo):
            async with way.savepoint(connection):
                await way.record(Outbox(), connection, Event("undone", {"id": 2}))
                raise Undo
        recorded = await read(way, captured_outbox, connection)
        recorded.assert_recorded("kept", payload__id=1, event_id='it\'s "1"', count=1)
        assert recorded.event_types == ["kept"]
        with pytest.raises(AssertionError, match=r"rolled back, or not committed yet: 1 \(undone\)"):
            recorded.assert_recorded("undone")
    with pytest.raises(Undo):
        async with way.transaction(database) as connection:
            await way.record(Outbox(), connection, Event("lost", {}))
            raise Undo
    async with way.transaction(database) as connection:
        assert (await read(way, captured_outbox, connection)).event_types == ["kept"]
        with pytest.raises(RecordError, match=r"call (await )?captured_outbox\.a?read"):
            captured_outbox.read(connection) if way.awaited else await captured_outbox.aread(connection)
    with pytest.raises(ConfigurationError, match=r"kept was recorded on a .*captured_outbox\.read\(connection\)"):
        captured_outbox.assert_not_recorded("anything")


async def test_events_of_an_open_transaction_are_delivered_to_handlers(
    way: Way, database: str, captured_outbox: CapturedOutbox
) -> None:
    handlers, seen = Handlers(), list[int]()

    @handlers.on("order.placed", name="mailer")
    async def note(event: ReceivedEvent, context: HandlerContext) -> None:
        seen.append(event.payload["id"])

    relay = MemoryRelay(captured_outbox, handlers)
    with pytest.raises(Undo):
        async with way.transaction(database) as connection:
            await way.record(Outbox(), connection, Event("order.placed", {"id": 42}))
            recorded = await read(way, captured_outbox, connection)
            for _ in range(2):  # each event once
                (await relay.arun(recorded)).assert_all_delivered()
            raise Undo
    assert seen == [42]


async def test_events_that_other_tests_left_are_not_recorded(way: Way, database: str) -> None:
    async with way.transaction(database) as connection:
        await way.record(Outbox(), connection, Event("from.another.test", {}))
    with CapturedOutbox() as captured:
        async with way.transaction(database) as connection:
            assert len(await read(way, captured, connection)) == 0


async def test_a_failed_insert_is_not_captured(way: Way, database: str, captured_outbox: CapturedOutbox) -> None:
    async with way.transaction(database) as connection:
        with pytest.raises(SchemaError, match="shop_"):
            await way.record(Outbox(tables=TableNames(prefix="shop_outbox_")), connection, Event("order.placed", {}))
    assert captured_outbox.events.event_types == []
