"""An inbox record is part of the caller's transaction, for every connection and driver."""

import pytest

from pillarbox import Event, Inbox, InboxError, InvalidConnectionError, NotInTransactionError, Outbox
from tests.integration.inbox.admitting import Undo, admit
from tests.integration.inbox.conftest import ReadInboxRecords
from tests.integration.record.conftest import committed_ids
from tests.integration.record.way import Way
from tests.integration.record.ways import EVERY

pytestmark = pytest.mark.parametrize(
    ("way", "database"),
    EVERY,
    indirect=["database"],
    ids=str,
)


async def test_an_event_is_admitted_once_per_consumer(way: Way, database: str, committed: ReadInboxRecords) -> None:
    async with way.transaction(database) as connection:
        assert await admit(way, connection, "e1")
        assert not await admit(way, connection, "e1")
        assert committed() == []
    async with way.transaction(database) as connection:
        assert not await admit(way, connection, "e1")
        assert await admit(way, connection, "e1", consumer="search")
        assert await admit(way, connection, "e2")
    assert committed() == [("billing", "e1"), ("billing", "e2"), ("search", "e1")]


async def test_a_rollback_discards_the_record_and_caused_events(way: Way, database: str) -> None:
    follow_up = Event("invoice.sent", {}, event_id="follow-up")
    for outcome in (Undo, None):
        try:
            async with way.transaction(database) as connection:
                assert await admit(way, connection, "e1")
                await way.record(Outbox(), connection, follow_up)
                if outcome:
                    raise outcome
        except Undo:
            assert committed_ids(database) == []
    assert committed_ids(database) == ["follow-up"]


async def test_a_rolled_back_savepoint_discards_its_admissions(
    way: Way, database: str, committed: ReadInboxRecords
) -> None:
    async with way.transaction(database) as connection:
        assert await admit(way, connection, "e1")
        with pytest.raises(Undo):
            async with way.savepoint(connection):
                assert await admit(way, connection, "e2")
                raise Undo
    assert committed() == [("billing", "e1")]


async def test_an_autocommit_connection_is_rejected_before_anything_is_written(
    way: Way, database: str, committed: ReadInboxRecords
) -> None:
    async with way.autocommit(database) as connection:
        with pytest.raises(NotInTransactionError, match=r"would commit by itself.*(with|BEGIN)") as caught:
            await admit(way, connection, "e1")
    assert isinstance(caught.value, InboxError)
    assert committed() == []


async def test_the_wrong_method_is_rejected_and_the_right_one_named(
    way: Way, database: str, committed: ReadInboxRecords
) -> None:
    async with way.transaction(database) as connection:
        if way.awaited:
            with pytest.raises(InvalidConnectionError, match=r"is an async connection; call await inbox\.aadmit"):
                Inbox().admit(connection, "billing", "e1")
        else:
            with pytest.raises(InvalidConnectionError, match=r"is not an async connection; call inbox\.admit"):
                await Inbox().aadmit(connection, "billing", "e1")
    assert committed() == []


async def test_an_invalid_id_is_rejected_before_anything_is_sent(
    way: Way, database: str, committed: ReadInboxRecords
) -> None:
    async with way.transaction(database) as connection:
        with pytest.raises(InboxError, match=r"control character U\+0000"):
            await admit(way, connection, "e\x00")
        assert await admit(way, connection, "e1")
    assert committed() == [("billing", "e1")]
