"""Two-phase commit: NOTIFY cannot be prepared, so an outbox for such transactions does not notify."""

import asyncpg
import pytest

from pillarbox import Event, Outbox
from tests.integration.record.conftest import committed_ids
from tests.integration.record.notifications import sleeping_relay

EVENT = Event("order.placed", {"id": 1}, event_id="evt-001")


async def test_without_notifications_a_record_can_be_prepared_and_committed_later(postgres_url: str) -> None:
    with sleeping_relay(postgres_url):
        connection = await asyncpg.connect(postgres_url)
        await connection.execute("BEGIN")
        await Outbox(wakeup="none").arecord(connection, EVENT)
        await connection.execute("PREPARE TRANSACTION 'order-42'")
        assert committed_ids(postgres_url) == []
        await connection.execute("COMMIT PREPARED 'order-42'")
        assert committed_ids(postgres_url) == ["evt-001"]
        await connection.close()


async def test_with_notifications_prepare_fails_and_nothing_is_recorded(postgres_url: str) -> None:
    with sleeping_relay(postgres_url):
        connection = await asyncpg.connect(postgres_url)
        await connection.execute("BEGIN")
        await Outbox().arecord(connection, EVENT)
        with pytest.raises(asyncpg.FeatureNotSupportedError, match="LISTEN, UNLISTEN, or NOTIFY"):
            await connection.execute("PREPARE TRANSACTION 'order-42'")
        await connection.close()
        assert committed_ids(postgres_url) == []
