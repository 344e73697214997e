"""Aggregates collect events, and their session records them at its commit; what is rolled back is not recorded."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from sqlalchemy import create_engine, select
from sqlalchemy.event import listen, remove
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, scoped_session, sessionmaker

from pillarbox import ConfigurationError, Event, Outbox, RecordError
from pillarbox.integrations.sqlalchemy import CollectsEvents, record_collected

pytestmark = pytest.mark.sqlalchemy

Recorded = Callable[[], list[str]]


class Base(DeclarativeBase):
    pass


class Order(CollectsEvents, Base):
    __tablename__ = "orders"

    id: Mapped[int] = mapped_column(primary_key=True)
    state: Mapped[str] = mapped_column(default="new")

    @classmethod
    def place(cls, state: str = "new") -> "Order":
        order = cls(state=state)
        order.collect(lambda: Event("order.placed", {"id": order.id}, event_id=f"placed-{order.id}"))
        return order

    def change(self, state: str) -> None:
        self.state = state
        self.collect(Event("order.changed", {"id": self.id}, event_id=f"{state}-{self.id}"))


@pytest.fixture
def database(tmp_path: Path, sqlite_template: Path) -> Path:
    file = tmp_path / "shop.db"
    file.write_bytes(sqlite_template.read_bytes())
    engine = create_engine(f"sqlite:///{file}")
    Base.metadata.create_all(engine)
    engine.dispose()
    return file


@pytest.fixture
def recorded(database: Path) -> Recorded:
    def read() -> list[str]:
        with closing(sqlite3.connect(database)) as connection:
            return [str(one) for (one,) in connection.execute("SELECT event_id FROM outbox_message ORDER BY id")]

    return read


@pytest.fixture
def sessions(database: Path) -> Iterator[sessionmaker[Session]]:
    # Savepoints of SQLite need a transaction that begins before them.
    engine = create_engine(f"sqlite:///{database}", connect_args={"isolation_level": "IMMEDIATE"})
    factory = sessionmaker(engine)
    record_collected(factory, Outbox())
    yield factory
    engine.dispose()


def test_events_are_recorded_with_the_commit_in_the_order_of_their_collection(
    sessions: sessionmaker[Session], recorded: Recorded
) -> None:
    with sessions.begin() as session:
        first, second = Order.place(), Order.place()
        session.add_all([first, second])
        session.flush()
        second.change("paid")
        first.change("paid")
        assert recorded() == []
    assert recorded() == ["placed-1", "placed-2", "paid-2", "paid-1"]


def test_a_loaded_object_collects_too_and_a_second_commit_records_nothing_again(
    sessions: sessionmaker[Session], recorded: Recorded
) -> None:
    with sessions() as session:
        session.add(Order.place())
        session.commit()
        order = session.scalars(select(Order)).one()
        order.change("paid")
        session.commit()
        session.commit()
    assert recorded() == ["placed-1", "paid-1"]


def test_a_rollback_discards_what_was_collected(sessions: sessionmaker[Session], recorded: Recorded) -> None:
    with sessions() as session:
        session.add(Order.place())
        session.flush()
        session.rollback()
        session.add(Order(id=7))
        session.commit()
    assert recorded() == []


def test_a_session_that_is_closed_without_a_commit_discards_what_was_collected(
    sessions: sessionmaker[Session], recorded: Recorded
) -> None:
    with sessions() as session:
        session.add(Order.place())
        session.close()
        session.add(Order(id=7))
        session.commit()
    assert recorded() == []


def test_a_savepoint_that_is_rolled_back_takes_its_events_with_it(
    sessions: sessionmaker[Session], recorded: Recorded
) -> None:
    with sessions.begin() as session:
        kept = Order(id=1)
        session.add(kept)
        kept.change("before")
        with suppress(RuntimeError), session.begin_nested():
            kept.change("lost")
            session.add(Order.place("lost"))
            with session.begin_nested():
                kept.change("lost-too")
            raise RuntimeError
        with session.begin_nested():
            kept.change("inside")
        kept.change("after")
    assert recorded() == ["before-1", "inside-1", "after-1"]


def test_an_event_that_cannot_be_recorded_rolls_the_business_rows_back(
    sessions: sessionmaker[Session], recorded: Recorded
) -> None:
    with pytest.raises(RecordError), sessions.begin() as session:
        order = Order(id=1)
        session.add(order)
        order.collect(lambda: Event("order placed\n", {}))
    with sessions() as session:
        assert session.scalars(select(Order)).all() == []
    assert recorded() == []


def test_a_commit_that_fails_records_nothing_and_the_next_one_only_its_own(
    sessions: sessionmaker[Session], recorded: Recorded
) -> None:
    with sessions.begin() as session:
        session.add(Order(id=1))
    with sessions() as session:
        twin = Order(id=1)
        session.add(twin)
        twin.change("twice")
        with pytest.raises(Exception, match="UNIQUE"):
            session.commit()
        session.rollback()
        session.get_one(Order, 1).change("paid")
        session.commit()
    assert recorded() == ["paid-1"]


def test_a_deleted_object_can_say_so(sessions: sessionmaker[Session], recorded: Recorded) -> None:
    with sessions.begin() as session:
        session.add(Order(id=1))
    with sessions.begin() as session:
        order = session.get_one(Order, 1)
        order.collect(Event("order.deleted", {}, event_id="deleted-1"))
        session.delete(order)
    assert recorded() == ["deleted-1"]


def test_what_listeners_of_the_flush_and_the_commit_collect_is_recorded(
    sessions: sessionmaker[Session], recorded: Recorded
) -> None:
    def inserted(_mapper: object, _connection: object, order: Order) -> None:
        order.collect(Event("order.inserted", {}, event_id=f"inserted-{order.id}"))

    def committing(session: Session) -> None:
        if order := session.info.pop("late", None):
            session.add(Order.place("late"))
            order.collect(Event("order.late", {}, event_id=f"late-{order.id}"))

    listen(Order, "after_insert", inserted)
    listen(sessions, "before_commit", committing)
    try:
        with sessions.begin() as session:
            session.add(order := Order(id=7))
            session.info["late"] = order
        assert recorded() == ["inserted-7", "inserted-8", "placed-8", "late-7"]
        with sessions() as session:
            session.add(order := Order(id=9))
            session.flush()
            order.change("paid")
            session.rollback()
            session.commit()
    finally:
        remove(Order, "after_insert", inserted)
    assert len(recorded()) == 4


def test_a_scoped_session_a_class_and_a_single_session_record_too(database: Path, recorded: Recorded) -> None:
    class Own(Session):
        pass

    engine = create_engine(f"sqlite:///{database}")
    scoped = scoped_session(sessionmaker(engine))
    record_collected(scoped, Outbox())
    scoped.add(Order.place())
    scoped.commit()
    scoped.remove()
    record_collected(Own, Outbox())
    single = Session(engine)
    record_collected(single, Outbox())
    for session in (Own(engine), single):
        with session:
            session.add(Order.place())
            session.commit()
    assert recorded() == ["placed-1", "placed-2", "placed-3"]
    engine.dispose()


def test_a_session_that_does_not_record_refuses_to_commit_what_was_collected(
    database: Path, recorded: Recorded
) -> None:
    engine = create_engine(f"sqlite:///{database}")
    with Session(engine) as session:
        session.add(Order(id=1))
        session.commit()  # nothing was collected
        for is_new in (True, False):
            if is_new:
                session.add(Order.place())
            else:
                session.get_one(Order, 1).change("paid")
            with pytest.raises(ConfigurationError, match="call record_collected"):
                session.commit()
            session.rollback()
        session.commit()
        session.add(Order.place())
        with pytest.raises(ConfigurationError), session.begin_nested():
            session.get_one(Order, 1).change("paid")
        session.rollback()
        assert [(one.id, one.state) for one in session.scalars(select(Order))] == [(1, "new")]
        record_collected(session, Outbox())
        session.get_one(Order, 1).change("paid")
        session.commit()
    assert recorded() == ["paid-1"]
    engine.dispose()


async def test_an_async_session_records_and_leaves_other_sessions_alone(postgres_url: str) -> None:
    engine = create_async_engine(postgres_url.replace("postgresql://", "postgresql+asyncpg://"))
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    factory, plain = async_sessionmaker(engine), async_sessionmaker(engine)
    record_collected(factory, Outbox())
    async with factory.begin() as session:
        session.add(Order.place())
    with pytest.raises(ConfigurationError, match="call record_collected"):
        async with plain.begin() as session:
            session.add(Order.place())
    async with plain.begin() as session:
        session.add(Order())
    async with factory() as session:
        session.add(Order.place())
        await session.rollback()
        async with session.begin():
            (await session.get_one(Order, 1)).change("paid")
    async with AsyncSession(engine) as session:
        found = await session.execute(select(Order.id))
        assert sorted(found.scalars()) == [1, 2]
        stored = await session.connection()
        rows = await stored.exec_driver_sql("SELECT event_id FROM outbox_message ORDER BY id")
        assert [str(row[0]) for row in rows] == ["placed-1", "paid-1"]
    await engine.dispose()


def test_the_same_sessions_are_not_hooked_twice(sessions: sessionmaker[Session]) -> None:
    with pytest.raises(ConfigurationError, match="already"):
        record_collected(sessions, Outbox())


@pytest.mark.parametrize("wrong", [None, "sessions", Order])
def test_what_is_no_session_is_refused(wrong: object) -> None:
    with pytest.raises(ConfigurationError, match="pass a sessionmaker"):
        record_collected(wrong, Outbox())  # type: ignore[arg-type]
