"""A recorded event is part of the caller's transaction, for every connection and driver."""

import pytest

from pillarbox import Event, NotInTransactionError, Outbox, RecordError
from tests.integration.record.conftest import EventIds
from tests.integration.record.way import Way
from tests.integration.record.ways import EVERY

pytestmark = pytest.mark.parametrize(
    ("way", "database"),
    EVERY,
    indirect=["database"],
    ids=str,
)

FIRST = Event("order.placed", {"id": 1}, event_id="first")
SECOND = Event("order.placed", {"id": 2}, event_id="second")


class Undo(Exception):
    pass


async def test_an_event_is_visible_after_the_commit(way: Way, database: str, committed: EventIds) -> None:
    async with way.transaction(database) as connection:
        assert await way.record(Outbox(), connection, FIRST, SECOND) == ["first", "second"]
        assert committed() == []
    assert committed() == ["first", "second"]


async def test_a_rollback_discards_the_event(way: Way, database: str, committed: EventIds) -> None:
    with pytest.raises(Undo):
        async with way.transaction(database) as connection:
            await way.record(Outbox(), connection, FIRST)
            raise Undo
    assert committed() == []


async def test_a_rolled_back_savepoint_discards_its_events(way: Way, database: str, committed: EventIds) -> None:
    async with way.transaction(database) as connection:
        await way.record(Outbox(), connection, FIRST)
        with pytest.raises(Undo):
            async with way.savepoint(connection):
                await way.record(Outbox(), connection, SECOND)
                raise Undo
    assert committed() == ["first"]


async def test_an_autocommit_connection_is_rejected_before_anything_is_written(
    way: Way, database: str, committed: EventIds
) -> None:
    async with way.autocommit(database) as connection:
        with pytest.raises(NotInTransactionError, match=r"would commit by itself.*(with|BEGIN)"):
            await way.record(Outbox(), connection, FIRST)
    assert committed() == []


async def test_the_wrong_method_is_rejected_and_the_right_one_named(
    way: Way, database: str, committed: EventIds
) -> None:
    async with way.transaction(database) as connection:
        if way.awaited:
            with pytest.raises(RecordError, match=r"is an async connection; call await outbox\.arecord"):
                Outbox().record(connection, FIRST)
        else:
            with pytest.raises(RecordError, match=r"is not an async connection; call outbox\.record"):
                await Outbox().arecord(connection, FIRST)
    assert committed() == []


async def test_recording_nothing_sends_nothing(way: Way, database: str) -> None:
    async with way.autocommit(database) as connection:
        assert await way.record(Outbox(), connection) == []
