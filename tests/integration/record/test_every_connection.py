"""A record shares the fate of the transaction it is made in, whatever the connection and the driver."""

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


async def test_what_is_recorded_is_seen_after_the_commit_and_not_before(
    way: Way, database: str, committed: EventIds
) -> None:
    async with way.transaction(database) as connection:
        assert await way.record(Outbox(), connection, FIRST, SECOND) == ["first", "second"]
        assert committed() == []
    assert committed() == ["first", "second"]


async def test_a_rollback_leaves_nothing(way: Way, database: str, committed: EventIds) -> None:
    with pytest.raises(Undo):
        async with way.transaction(database) as connection:
            await way.record(Outbox(), connection, FIRST)
            raise Undo
    assert committed() == []


async def test_a_savepoint_rolled_back_forgets_what_was_recorded_in_it(
    way: Way, database: str, committed: EventIds
) -> None:
    async with way.transaction(database) as connection:
        await way.record(Outbox(), connection, FIRST)
        with pytest.raises(Undo):
            async with way.savepoint(connection):
                await way.record(Outbox(), connection, SECOND)
                raise Undo
    assert committed() == ["first"]


async def test_a_connection_that_commits_by_itself_is_refused_and_nothing_is_written(
    way: Way, database: str, committed: EventIds
) -> None:
    async with way.autocommit(database) as connection:
        with pytest.raises(NotInTransactionError, match=r"would commit by itself.*(with|BEGIN)"):
            await way.record(Outbox(), connection, FIRST)
    assert committed() == []


async def test_the_verb_of_the_other_kind_is_refused_and_names_the_right_one(
    way: Way, database: str, committed: EventIds
) -> None:
    async with way.transaction(database) as connection:
        if way.awaited:
            with pytest.raises(RecordError, match=r"is awaited; call await outbox\.arecord"):
                Outbox().record(connection, FIRST)
        else:
            with pytest.raises(RecordError, match=r"is not awaited; call outbox\.record"):
                await Outbox().arecord(connection, FIRST)
    assert committed() == []


async def test_recording_nothing_sends_nothing(way: Way, database: str) -> None:
    async with way.autocommit(database) as connection:
        assert await way.record(Outbox(), connection) == []
