"""A billing service on FastStream: handles each order once, and publishes invoices through the outbox."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from faststream import AckPolicy, FastStream
from faststream.rabbit import QueueType, RabbitBroker, RabbitQueue
from pydantic import BaseModel
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from pillarbox import Relay, open_store, open_transport
from pillarbox.integrations.faststream import InboxMiddleware, InboxTransaction, OutboxPublisher
from pillarbox.telemetry.logs import RelayLog

DATABASE_URL = os.environ["PILLARBOX_STORE"]
AMQP_URL = os.environ["PILLARBOX_TRANSPORT"]

engine = create_async_engine(DATABASE_URL.replace("postgresql://", "postgresql+asyncpg://"))
broker = RabbitBroker(AMQP_URL, middlewares=[InboxMiddleware("billing", engine)])
invoices = OutboxPublisher("invoice.sent")


class Order(BaseModel):
    """The payload of `order.placed`."""

    id: int
    total: int


class Invoice(BaseModel):
    """The payload of `invoice.sent`."""

    order: int


def queue(name: str) -> RabbitQueue:
    """A queue as the relay declares it, so that either may start first."""
    return RabbitQueue(name, queue_type=QueueType.QUORUM, durable=True)


@broker.subscriber(queue("order.placed"), ack_policy=AckPolicy.NACK_ON_ERROR)
async def bill(order: Order, connection: Annotated[AsyncConnection, InboxTransaction]) -> None:
    await connection.execute(
        text("INSERT INTO invoice (order_id, total) VALUES (:id, :total)"), {"id": order.id, "total": order.total}
    )
    await invoices.publish(Invoice(order=order.id))  # in the same transaction


@broker.subscriber(queue("invoice.sent"), ack_policy=AckPolicy.NACK_ON_ERROR)
async def note(invoice: Invoice, connection: Annotated[AsyncConnection, InboxTransaction]) -> None:
    await connection.execute(text("UPDATE invoice SET sent = true WHERE order_id = :id"), {"id": invoice.order})


@asynccontextmanager
async def lifespan() -> AsyncIterator[None]:
    async with engine.begin() as connection:
        await connection.execute(
            text("CREATE TABLE IF NOT EXISTS invoice (order_id bigint, total bigint, sent boolean DEFAULT false)")
        )
    store, transport = open_store(DATABASE_URL), open_transport(AMQP_URL)
    try:
        async with Relay(store=store, transports={"rabbitmq": transport}, observers=[RelayLog()]):
            yield
    finally:
        await transport.aclose()
        await store.aclose()
        await engine.dispose()


app = FastStream(broker, lifespan=lifespan)
