"""psycopg connections with any cursors, rows and pipelines: recording works or is rejected."""

from contextlib import closing
from typing import Any

import psycopg
import psycopg2
import pytest
from psycopg.rows import class_row, dict_row, scalar_row

from pillarbox import DuplicateEventError, Event, NotInTransactionError, Outbox
from tests.integration.record.conftest import committed_ids

EVENT = Event("order.placed", {"id": "100 %"}, event_id="evt-001")


class Order:
    """A row class that does not match the statements of the outbox."""

    def __init__(self, *, id: int) -> None:
        self.id = id


@pytest.mark.parametrize("row_factory", [dict_row, scalar_row, class_row(Order)])
def test_any_row_factory_works(postgres_url: str, row_factory: Any) -> None:
    with psycopg.connect(postgres_url, row_factory=row_factory) as connection:
        Outbox().record(connection, EVENT)
    assert committed_ids(postgres_url) == ["evt-001"]


@pytest.mark.parametrize("cursor_factory", [psycopg.RawCursor, psycopg.ClientCursor])
def test_any_cursor_factory_works(postgres_url: str, cursor_factory: Any) -> None:
    with psycopg.connect(postgres_url, cursor_factory=cursor_factory) as connection:
        Outbox().record(connection, EVENT, Event("with bytes", b"\x00%s\xff"))
    assert len(committed_ids(postgres_url)) == 2


async def test_any_async_cursor_factory_works(postgres_url: str) -> None:
    async with await psycopg.AsyncConnection.connect(postgres_url, cursor_factory=psycopg.AsyncRawCursor) as connection:
        await Outbox().arecord(connection, EVENT)
    assert committed_ids(postgres_url) == ["evt-001"]


def test_a_transaction_is_recognized_in_a_pipeline(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection, connection.pipeline():
        with connection.transaction():
            connection.execute("SELECT 1")
            Outbox().record(connection, EVENT)
        connection.execute("SELECT 1")
        with pytest.raises(NotInTransactionError):
            Outbox().record(connection, Event("late", {}))
    assert committed_ids(postgres_url) == ["evt-001"]


def test_a_preceding_select_changes_nothing(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("SELECT 1")
        Outbox().record(connection, EVENT)
    assert committed_ids(postgres_url) == ["evt-001"]


async def test_a_duplicate_in_a_pipeline_is_raised_by_record(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        Outbox().record(connection, EVENT)
    with psycopg.connect(postgres_url) as connection, connection.pipeline(), pytest.raises(DuplicateEventError):
        Outbox(wakeup="none").record(connection, EVENT)
    async with await psycopg.AsyncConnection.connect(postgres_url) as awaited, awaited.pipeline():
        with pytest.raises(DuplicateEventError):
            await Outbox().arecord(awaited, EVENT)
        await awaited.rollback()


def test_a_block_of_psycopg2_is_a_transaction_also_in_autocommit_mode(postgres_url: str) -> None:
    with closing(psycopg2.connect(postgres_url)) as connection:
        connection.autocommit = True
        with connection:  # the transaction begins with the first statement
            Outbox().record(connection, Event("order.placed", {}, event_id="evt-001"))
            assert committed_ids(postgres_url) == []
        assert committed_ids(postgres_url) == ["evt-001"]
        with pytest.raises(NotInTransactionError):
            Outbox().record(connection, Event("order.placed", {}))
