"""Recording notifies a sleeping relay once, at the commit, and never an awake relay."""

import psycopg
import pytest

from pillarbox import Event, Outbox, TableNames
from pillarbox.dialects.postgres import DIALECT
from pillarbox.stores.postgres import PostgresStore
from tests.integration.record.notifications import Listener, sleeping_relay
from tests.integration.record.way import Way
from tests.integration.record.ways import POSTGRES

HELD = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"


def event(number: int = 1) -> Event:
    return Event("order.placed", {"id": number})


@pytest.mark.parametrize("way", POSTGRES, ids=str)
async def test_a_sleeping_relay_is_notified_at_the_commit(way: Way, postgres_url: str) -> None:
    with sleeping_relay(postgres_url), Listener(postgres_url) as listener:
        async with way.transaction(postgres_url) as connection:
            await way.record(Outbox(), connection, event())
            assert not listener.notified()
        assert listener.notified()


@pytest.mark.parametrize("way", POSTGRES, ids=str)
async def test_a_transaction_notifies_once(way: Way, postgres_url: str) -> None:
    with sleeping_relay(postgres_url), Listener(postgres_url) as listener:
        async with way.transaction(postgres_url) as connection:
            await way.record(Outbox(), connection, event(1))
            await way.record(Outbox(), connection, *(event(number) for number in range(2, 50)))
            await way.record(Outbox(), connection, event(50))
        assert listener.count() == 1


@pytest.mark.parametrize("way", POSTGRES, ids=str)
async def test_a_rolled_back_savepoint_does_not_notify(way: Way, postgres_url: str) -> None:
    with sleeping_relay(postgres_url), Listener(postgres_url) as listener:
        async with way.transaction(postgres_url) as connection:
            with pytest.raises(ZeroDivisionError):
                async with way.savepoint(connection):
                    await way.record(Outbox(), connection, event())
                    raise ZeroDivisionError
        assert not listener.notified()


def test_an_awake_relay_is_not_notified(postgres_url: str) -> None:
    with Listener(postgres_url) as listener:
        with sleeping_relay(postgres_url):
            pass
        with psycopg.connect(postgres_url) as connection:
            Outbox().record(connection, event())
            Outbox().record(connection, event(), event())
        assert not listener.notified()


def test_a_rollback_does_not_notify(postgres_url: str) -> None:
    with sleeping_relay(postgres_url), Listener(postgres_url) as listener:
        with psycopg.connect(postgres_url) as connection:
            Outbox().record(connection, event())
            connection.rollback()
        assert not listener.notified()


def test_a_relay_that_slept_after_the_snapshot_is_notified(postgres_url: str) -> None:
    with Listener(postgres_url) as listener, psycopg.connect(postgres_url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
        connection.execute("SELECT count(*) FROM outbox_relay")
        with sleeping_relay(postgres_url):
            Outbox().record(connection, event())
            connection.commit()
        assert listener.notified()


def test_one_sleeping_relay_of_two_is_notified(postgres_url: str) -> None:
    with Listener(postgres_url) as listener, sleeping_relay(postgres_url):
        with sleeping_relay(postgres_url):
            pass
        with psycopg.connect(postgres_url) as connection:
            Outbox().record(connection, event())
        assert listener.notified()


def test_recording_leaves_no_lock(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        Outbox().record(connection, event())
        Outbox().record(connection, event(), event())
        assert connection.execute(HELD).fetchone() == (0,)


async def test_outboxes_of_one_database_wake_their_own_relays(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE SCHEMA sales")
    tables = TableNames(schema="sales", prefix="shop_")
    store = PostgresStore(postgres_url, tables=tables)
    await store.schema.apply()
    await store.aclose()
    shop = DIALECT.names(tables)
    with Listener(postgres_url) as listener, Listener(postgres_url, shop) as other:
        with (
            sleeping_relay(postgres_url),
            sleeping_relay(postgres_url, shop),
            psycopg.connect(postgres_url) as connection,
        ):
            Outbox(tables=tables).record(connection, event())
        assert other.notified()
        with sleeping_relay(postgres_url, shop), psycopg.connect(postgres_url) as connection:
            Outbox().record(connection, event())
        assert not listener.notified()
