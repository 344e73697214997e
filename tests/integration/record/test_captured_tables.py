"""The captured outbox reads from the tables of the outbox that recorded, also through engines and pools."""

from contextlib import aclosing
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.orm import Session, sessionmaker

from pillarbox import Event, Handlers, NotInTransactionError, Outbox, Relay
from pillarbox.stores.postgres import PostgresStore
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.table_names import TableNames
from pillarbox.testing import CapturedOutbox


async def test_tables_of_another_prefix_and_schema(empty_postgres_url: str, captured_outbox: CapturedOutbox) -> None:
    tables = TableNames(prefix="shop_outbox_", schema="Shop")
    async with aclosing(PostgresStore(empty_postgres_url, tables=tables)) as store:
        await store.schema.apply()
    engine = create_async_engine(empty_postgres_url.replace("postgresql://", "postgresql+asyncpg://"))
    async with engine.begin() as connection:
        await Outbox(tables=tables).arecord(connection, Event("order.placed", {"id": 1}))
    (await captured_outbox.aread(engine)).assert_recorded("order.placed", payload__id=1)
    await engine.dispose()


@pytest.mark.sqlalchemy
async def test_an_engine_and_a_session_factory_see_what_was_committed(
    tmp_path: Path, captured_outbox: CapturedOutbox
) -> None:
    path = tmp_path / "shop.db"
    async with aclosing(SqliteStore(path)) as store:
        await store.schema.apply()
    engine = create_engine(f"sqlite:///{path}")
    with Session(engine) as session:
        Outbox().record(session, Event("forgotten.commit", {}))
    with Session(engine) as session, session.begin():
        Outbox().record(session, Event("order.placed", {"id": 1}))
    for connection in (engine, sessionmaker(engine)):
        recorded = captured_outbox.read(connection)
        assert recorded.event_types == ["order.placed"]
        assert [row.event_type for row in recorded.unseen] == ["forgotten.commit"]
    engine.dispose()


async def test_a_delivered_event_stays_recorded(tmp_path: Path, captured_outbox: CapturedOutbox) -> None:
    path, handlers = tmp_path / "shop.db", Handlers()
    handlers.on("order.placed", name="mailer")(lambda event, context: None)
    async with aclosing(SqliteStore(path)) as store:
        await store.schema.apply()
        engine = create_engine(f"sqlite:///{path}")
        Outbox().record(engine, Event("order.placed", {"id": 1}))
        assert await Relay(store=store, transports={"handlers": handlers}).run_until_empty() == 0
    captured_outbox.read(engine).assert_recorded("order.placed", payload__id=1)
    engine.dispose()


async def test_a_connection_without_a_transaction_is_refused_as_one_to_read_from(
    postgres_url: str, captured_outbox: CapturedOutbox
) -> None:
    with (
        psycopg.connect(postgres_url, autocommit=True) as connection,
        pytest.raises(NotInTransactionError, match=r"^captured_outbox\.read\(…\) needs a connection in a transaction"),
    ):
        captured_outbox.read(connection)
    awaited = await psycopg.AsyncConnection.connect(postgres_url, autocommit=True)
    async with awaited:
        with pytest.raises(NotInTransactionError, match=r"^captured_outbox\.aread\(…\) needs"):
            await captured_outbox.aread(awaited)
