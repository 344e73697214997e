"""A record wakes a relay that sleeps, at the commit and not before, and bothers nobody who is awake."""

import psycopg
import pytest

from pillarbox import Event, Outbox
from pillarbox.core.names import Names
from pillarbox.stores.postgres import PostgresStore
from tests.integration.record.doorbell import Doorbell, relay_sleeps
from tests.integration.record.way import Way
from tests.integration.record.ways import POSTGRES

EVENT = Event("order.placed", {"id": 1})


@pytest.mark.parametrize("way", POSTGRES, ids=str)
async def test_a_sleeping_relay_is_rung_at_the_commit(way: Way, postgres_url: str) -> None:
    relay_sleeps(postgres_url)
    with Doorbell(postgres_url) as bell:
        async with way.transaction(postgres_url) as handle:
            await way.record(Outbox(), handle, EVENT)
            assert not bell.rang()
        assert bell.rang()


def test_nobody_asleep_nobody_rung(postgres_url: str) -> None:
    relay_sleeps(postgres_url, seconds=-5)
    with Doorbell(postgres_url) as bell:
        with psycopg.connect(postgres_url) as connection:
            Outbox().record(connection, EVENT)
        assert not bell.rang()


def test_a_rollback_rings_nobody(postgres_url: str) -> None:
    relay_sleeps(postgres_url)
    with Doorbell(postgres_url) as bell:
        with psycopg.connect(postgres_url) as connection:
            Outbox().record(connection, EVENT)
            connection.rollback()
        assert not bell.rang()


async def test_outboxes_of_one_database_have_bells_of_their_own(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE SCHEMA sales")
    store = PostgresStore(postgres_url, schema="sales", prefix="shop_")
    await store.schema.apply()
    await store.aclose()
    with psycopg.connect(postgres_url) as connection:
        connection.execute(
            "INSERT INTO sales.shop_relay (id, lease_until, asleep_until) "
            "VALUES ('r', now() + interval '1 hour', now() + interval '1 hour')"
        )
    relay_sleeps(postgres_url)
    with Doorbell(postgres_url) as bell, Doorbell(postgres_url, Names(schema="sales", prefix="shop_")) as other:
        with psycopg.connect(postgres_url) as connection:
            Outbox(schema="sales", prefix="shop_").record(connection, EVENT)
        assert other.rang()
        assert not bell.rang()
