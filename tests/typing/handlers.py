"""What a type checker accepts as a handler, and what it refuses. Nothing here is run.

A line that must be an error is marked as one: mypy and pyright fail for a mark that is not needed.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker
from sqlalchemy.orm import Session, sessionmaker

from pillarbox import ConsumedEvent, Consumer, Event, HandlerContext, Handlers, Inbox, ReceivedEvent
from pillarbox.adapters import Source
from pillarbox.stores.memory import MemoryStore

handlers, inbox = Handlers(), Inbox()


@contextmanager
def transaction() -> Iterator[Connection]:
    with create_engine("sqlite://").begin() as connection:
        yield connection


@asynccontextmanager
async def awaited_transaction() -> AsyncIterator[AsyncSession]:
    async with async_sessionmaker[AsyncSession]().begin() as session:
        yield session


def consumers(
    source: Source,
    engine: Engine,
    factory: sessionmaker[Session],
    awaited_engine: AsyncEngine,
    awaited_factory: async_sessionmaker[AsyncSession],
    store: MemoryStore,
) -> list[Consumer]:
    return [
        Consumer(source, name="billing", transaction=engine),
        Consumer(source, name="billing", transaction=factory),
        Consumer(source, name="billing", transaction=awaited_engine),
        Consumer(source, name="billing", transaction=awaited_factory),
        Consumer(source, name="billing", transaction=store.transaction),
        Consumer(source, name="billing", transaction=transaction),
        Consumer(name="billing", transaction=awaited_transaction),
    ]


def consumer_handlers(consumer: Consumer) -> None:
    @consumer.on("order.placed")
    def handle(connection: Connection, event: ConsumedEvent) -> None: ...

    @consumer.on("order.*", "payment.*")
    async def ahandle(session: AsyncSession, event: ConsumedEvent) -> None: ...

    handle(1, 2)  # type: ignore[arg-type]


def relay_handlers() -> None:
    @handlers.on("order.placed")
    def handle(event: ReceivedEvent, context: HandlerContext) -> None: ...

    @handlers.on("order.placed", name="mailer")
    async def ahandle(event: ReceivedEvent, context: HandlerContext) -> None: ...

    handlers.on("order.placed")(handle)
    handlers.on("order.placed")(ahandle)


@inbox.once("billing")
def charge(session: Session, event: Event) -> int:
    return 1


@inbox.once("billing")
async def acharge(session: AsyncSession, event: Event, *, amount: int) -> int:
    return amount


async def once(session: Session, awaited: AsyncSession, event: Event) -> tuple[int | None, int | None]:
    charge(awaited, event)  # type: ignore[arg-type]
    await acharge(awaited, event)  # type: ignore[call-arg]
    return charge(session, event), await acharge(awaited, event, amount=3)


def refused(consumer: Consumer, source: Source, engine: Engine) -> None:
    def without_transaction(event: ConsumedEvent) -> None: ...
    def with_another_event(connection: Connection, event: int) -> None: ...
    def with_more(event: ReceivedEvent, context: HandlerContext, more: int) -> None: ...

    consumer.on("order.placed")(without_transaction)  # type: ignore[type-var]
    consumer.on("order.placed")(with_another_event)  # type: ignore[type-var]
    consumer.on(42)  # type: ignore[arg-type]
    handlers.on("order.placed")(with_more)  # type: ignore[type-var]
    handlers.on("order.placed")(with_another_event)  # type: ignore[type-var]
    Consumer(source, name="billing", transaction="sqlite:///shop.db")  # type: ignore[arg-type]
    Consumer(engine, name="billing", transaction=engine)  # type: ignore[arg-type]
    Consumer(source, transaction=engine)  # type: ignore[call-arg]
