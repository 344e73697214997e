"""The middleware and the publisher of FastStream on a real broker: rollbacks, duplicates, several subscribers."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import contextmanager
from typing import Annotated, Any

import psycopg
import pytest
from faststream import AckPolicy, ExceptionMiddleware
from faststream.rabbit import QueueType, RabbitBroker, RabbitExchange, RabbitQueue
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker, create_async_engine

from pillarbox import ConfigurationError, Inbox, Outbox
from pillarbox.core.errors import InboxError, NotInTransactionError, RecordError
from pillarbox.integrations.faststream import InboxMiddleware, InboxTransaction, OutboxPublisher
from pillarbox.table_names import TableNames
from pillarbox.testing.waiting import eventually
from tests.frameworks.consumers.shop import Shop

Session = Annotated[AsyncSession, InboxTransaction]
INSERT = text("INSERT INTO invoice (order_id) VALUES (:id)")


@pytest.fixture
async def engine(shop: Shop) -> AsyncIterator[AsyncEngine]:
    engine = create_async_engine(shop.database.replace("postgresql://", "postgresql+asyncpg://"))
    yield engine
    await engine.dispose()


@pytest.fixture
def errors() -> list[Exception]:
    return []


@pytest.fixture
async def broker(shop: Shop, engine: AsyncEngine, errors: list[Exception]) -> AsyncIterator[RabbitBroker]:
    """A broker with the middleware; errors of Pillarbox are collected, and their messages acknowledged."""

    async def collect(error: Exception) -> None:
        errors.append(error)

    inbox = InboxMiddleware("billing", async_sessionmaker(engine))
    collecting = ExceptionMiddleware(handlers={ConfigurationError: collect, InboxError: collect})
    broker = RabbitBroker(shop.broker, middlewares=[collecting, inbox])
    yield broker
    await broker.stop()


def queue(name: str = "order.placed") -> RabbitQueue:
    return RabbitQueue(name, queue_type=QueueType.QUORUM, durable=True)


async def invoices(shop: Shop, *expected: int) -> None:
    def seen() -> bool:
        return len(shop.invoices()) >= len(expected)

    await eventually(lambda: asyncio.to_thread(seen), within=60)
    assert await asyncio.to_thread(shop.invoices) == sorted(expected)


async def test_an_event_whose_handler_raises_is_rolled_back_and_delivered_again(
    shop: Shop, broker: RabbitBroker
) -> None:
    attempts: list[int] = []

    @broker.subscriber(queue(), ack_policy=AckPolicy.NACK_ON_ERROR)
    async def bill(order: dict[str, int], session: Session) -> None:
        await session.execute(INSERT, order)
        attempts.append(order["id"])
        if attempts.count(order["id"]) == 1:
            raise ValueError("not yet")

    await broker.start()
    for number in (1, 2):
        await broker.publish({"id": number}, "order.placed", message_id=f"e{number}")
    await invoices(shop, 1, 2)
    assert sorted(attempts) == [1, 1, 2, 2]


async def test_a_duplicate_is_skipped_and_its_result_is_not_published(shop: Shop, broker: RabbitBroker) -> None:
    @broker.subscriber(queue(), ack_policy=AckPolicy.REJECT_ON_ERROR)
    @broker.publisher("results")
    async def bill(order: dict[str, int], session: Session) -> int:
        await session.execute(INSERT, order)
        return order["id"]

    shop.declare("results")
    await broker.start()
    for number in (1, 1, 1, 2):
        await broker.publish({"id": number}, "order.placed", message_id=f"e{number}")
    await invoices(shop, 1, 2)
    await eventually(lambda: asyncio.to_thread(lambda: shop.ready("results") == 2), within=60)
    assert sorted(one.body for one in shop.taken("results")) == [b"1", b"2"]


async def test_two_subscribers_handle_the_same_event_each_once(shop: Shop, broker: RabbitBroker) -> None:
    orders = RabbitExchange("orders", durable=True)

    async def bill(order: dict[str, int], session: Session) -> None:
        await session.execute(INSERT, order)

    for name in ("billing", "audit"):
        broker.subscriber(queue(name), orders, ack_policy=AckPolicy.NACK_ON_ERROR)(bill)
    await broker.start()
    for name in ("billing", "audit", "billing", "audit"):
        await broker.publish({"id": 1}, name, orders, message_id="e1")
    await broker.publish({"id": 2}, "billing", orders, message_id="e2")
    await invoices(shop, 1, 1, 2)


@pytest.mark.parametrize("policy", [AckPolicy.ACK, AckPolicy.ACK_FIRST, AckPolicy.MANUAL])
async def test_a_policy_that_would_lose_events_is_refused(
    shop: Shop, broker: RabbitBroker, errors: list[Exception], policy: AckPolicy
) -> None:
    @broker.subscriber(queue(), ack_policy=policy)
    async def bill(order: dict[str, int], session: Session) -> None:
        await session.execute(INSERT, order)

    await broker.start()
    await broker.publish({"id": 1}, "order.placed", message_id="e1")
    await eventually(lambda: asyncio.sleep(0, bool(errors)), within=60)
    assert "set ack_policy=AckPolicy.NACK_ON_ERROR" in str(errors[0])
    assert shop.invoices() == []


async def test_a_message_without_an_id_is_an_error(shop: Shop, broker: RabbitBroker, errors: list[Exception]) -> None:
    @broker.subscriber(queue(), ack_policy=AckPolicy.NACK_ON_ERROR)
    async def bill(order: dict[str, int], session: Session) -> None:
        await session.execute(INSERT, order)

    await broker.start()
    shop.publish("order.placed", b'{"id": 1}')
    await eventually(lambda: asyncio.sleep(0, bool(errors)), within=60)
    assert "no message_id" in str(errors[0])
    assert shop.invoices() == []


async def test_a_sync_transaction_is_refused(shop: Shop, errors: list[Exception]) -> None:
    @contextmanager
    def transaction() -> Any:
        with psycopg.connect(shop.database) as connection:
            yield connection

    async def collect(error: ConfigurationError) -> None:
        errors.append(error)

    collecting = ExceptionMiddleware(handlers={ConfigurationError: collect})
    async with RabbitBroker(shop.broker, middlewares=[collecting, InboxMiddleware("billing", transaction)]) as broker:

        @broker.subscriber(queue(), ack_policy=AckPolicy.NACK_ON_ERROR)
        async def bill(order: dict[str, int]) -> None:
            raise AssertionError

        await broker.start()
        await broker.publish({"id": 1}, "order.placed", message_id="e1")
        await eventually(lambda: asyncio.sleep(0, bool(errors)), within=60)
    assert "would block the event loop" in str(errors[0])


@pytest.mark.parametrize(
    "make",
    [
        lambda: InboxMiddleware("", create_async_engine("postgresql+asyncpg://")),
        lambda: InboxMiddleware("billing", 42),  # type: ignore[arg-type] # made to be wrong
    ],
)
def test_invalid_settings_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(ConfigurationError):
        make()


# The publisher


async def test_an_event_is_recorded_in_the_transaction_that_is_passed(shop: Shop, engine: AsyncEngine) -> None:
    orders = OutboxPublisher("order.placed", aggregate_type="order")
    with pytest.raises(ValueError, match="declined"):
        async with engine.begin() as connection:
            await orders.publish({"id": 1}, connection=connection)
            raise ValueError("declined")
    async with AsyncSession(engine) as session, session.begin():
        async with session.begin_nested() as savepoint:
            await orders.publish({"id": 2}, connection=session)
            await savepoint.rollback()
        event_id = await orders.publish({"id": 3}, connection=session, aggregate_id="3", correlation_id="c-1")
    await asyncio.to_thread(shop.relay)
    [taken] = shop.taken("order.placed")
    assert (taken.body, taken.properties.message_id) == (b'{"id":3}', event_id)
    assert (taken.properties.correlation_id, (taken.properties.headers or {})["aggregateType"]) == ("c-1", "order")


async def test_a_publisher_without_a_transaction_and_with_invalid_fields() -> None:
    with pytest.raises(NotInTransactionError, match=r"order\.placed has no transaction"):
        await OutboxPublisher("order.placed").publish({})
    with pytest.raises(RecordError):
        OutboxPublisher("")


async def test_inbox_and_outbox_with_another_prefix(shop: Shop, engine: AsyncEngine) -> None:
    tables = TableNames(prefix="shop_events_")
    invoices_of = OutboxPublisher("invoice.sent", outbox=Outbox(tables=tables))
    await shop.apply_schema(tables)
    inbox = InboxMiddleware("billing", engine, inbox=Inbox(tables=tables))
    async with RabbitBroker(shop.broker, middlewares=[inbox]) as broker:

        @broker.subscriber(queue(), ack_policy=AckPolicy.NACK_ON_ERROR)
        async def bill(order: dict[str, int], connection: Annotated[Any, InboxTransaction]) -> None:
            await connection.execute(INSERT, order)
            await invoices_of.publish(order)

        await broker.start()
        for number in (1, 1, 2):
            await broker.publish({"id": number}, "order.placed", message_id=f"e{number}")
        await invoices(shop, 1, 2)
    with psycopg.connect(shop.database) as connection:
        [pending] = connection.execute("SELECT count(*) FROM shop_events_message").fetchall()
        [admitted] = connection.execute("SELECT count(*) FROM shop_events_inbox").fetchall()
    assert (pending, admitted) == ((2,), (2,))
