"""Places an order: `python shop.py 42 1999`. The order and its event are one transaction."""

import os
import sys

from sqlalchemy import BigInteger, Column, MetaData, Table, create_engine

from pillarbox import Event, Outbox

engine = create_engine(os.environ["PILLARBOX_STORE"].replace("postgresql://", "postgresql+psycopg://"))
outbox = Outbox()
metadata = MetaData()
orders = Table("orders", metadata, Column("id", BigInteger, primary_key=True), Column("total", BigInteger))
invoices = Table("invoice", metadata, Column("order_id", BigInteger), Column("total", BigInteger))


def place(number: int, total: int) -> str:
    """Save an order and record its event; returns the event id."""
    with engine.begin() as connection:
        connection.execute(orders.insert().values(id=number, total=total))
        [event_id] = outbox.record(
            connection, Event("order.placed", {"id": number, "total": total}, key=f"order:{number}")
        )
    return event_id


if __name__ == "__main__":
    metadata.create_all(engine)
    print(place(int(sys.argv[1]), int(sys.argv[2])))
