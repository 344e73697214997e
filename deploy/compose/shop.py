"""The consumer of the stack: counts orders, each of them once. Replace it with your own."""

import os

from sqlalchemy import Connection, create_engine, text

from pillarbox import ConsumedEvent, Consumer
from pillarbox.transports.rabbitmq import RabbitMQSource

engine = create_engine(os.environ["PILLARBOX_STORE"].replace("postgresql://", "postgresql+psycopg://", 1))
consumer = Consumer(
    RabbitMQSource(os.environ["PILLARBOX_TRANSPORT"], queue="order.placed"), name="orders", transaction=engine
)


@consumer.on("order.placed")
def count_order(connection: Connection, event: ConsumedEvent) -> None:
    connection.execute(text("CREATE TABLE IF NOT EXISTS orders (event_id text PRIMARY KEY)"))
    connection.execute(text("INSERT INTO orders VALUES (:id)"), {"id": event.event_id})
