"""Orders through SQLAlchemy on PostgreSQL, their events to an exchange on RabbitMQ, and a consumer at the other end.

python examples/sqlalchemy_rabbitmq.py postgresql://app@127.0.0.1:5432/shop amqp://app@127.0.0.1:5672/
"""

import asyncio
import sys

import pika
from sqlalchemy import create_engine, make_url
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, sessionmaker

from pillarbox import Event, Outbox, Relay, Route
from pillarbox.stores.postgres import PostgresStore
from pillarbox.transports.rabbitmq import Binding, Exchange, Queue, RabbitMQTransport

LIMIT = 1000
QUEUE = "shop.billing"

outbox = Outbox()


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"

    id: Mapped[int] = mapped_column(primary_key=True)
    customer: Mapped[str]
    total: Mapped[int]


class Declined(Exception):
    """The order exceeds the credit limit of the customer."""


def place_order(sessions: sessionmaker[Session], customer: str, total: int) -> int:
    """One transaction: the order and its event, or neither. Raises Declined."""
    with sessions.begin() as session:
        order = Order(customer=customer, total=total)
        session.add(order)
        session.flush()  # assigns the id of the order
        payload = {"id": order.id, "customer": customer, "total": total}
        outbox.record(session, Event("order.placed", payload, aggregate_type="ORDER", aggregate_id=str(order.id)))
        if total > LIMIT:
            raise Declined(customer)  # rolls both back
        return order.id


async def deliver(store_url: str, broker_url: str) -> None:
    """Send all pending events. In production `pillarbox relay` does this."""
    store = PostgresStore(store_url)
    broker = RabbitMQTransport(
        broker_url,
        exchanges=[Exchange(name="shop", type="topic")],
        queues=[Queue(name=QUEUE, bindings=[Binding(exchange="shop", routing_key="order.*")])],
    )
    relay = Relay(
        store=store,
        transports={"rabbit": broker},
        destinations={"shop": RabbitMQTransport.to(exchange="shop", routing_key="{event_type}")},
        routes=[Route(event_type="order.*", to=["shop"])],
    )
    await relay.run_until_empty()
    await broker.aclose()
    await store.aclose()


def consume(broker_url: str) -> None:
    """Print the messages of the queue. The message id is the event id: detect duplicates by it."""
    with pika.BlockingConnection(pika.URLParameters(broker_url)) as connection:
        channel = connection.channel()
        while True:
            _, properties, body = channel.basic_get(QUEUE, auto_ack=True)
            if properties is None or body is None:
                return
            print("billing got", properties.type, body.decode())


async def make_tables(store_url: str) -> None:
    store = PostgresStore(store_url)
    await store.schema.apply()
    await store.aclose()


def main(store_url: str, broker_url: str) -> None:
    asyncio.run(make_tables(store_url))
    engine = create_engine(make_url(store_url).set(drivername="postgresql+psycopg"))
    Base.metadata.create_all(engine)
    sessions = sessionmaker(engine)
    for customer, total in (("ada", 120), ("mallory", 5000), ("grace", 80)):
        try:
            place_order(sessions, customer, total)
        except Declined:
            print("declined", customer)
    engine.dispose()
    asyncio.run(deliver(store_url, broker_url))
    consume(broker_url)


if __name__ == "__main__":
    main(*sys.argv[1:])
