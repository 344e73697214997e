"""The first outbox: an order and its event in one SQLite transaction, and a handler that gets the event."""

import asyncio
import sqlite3

from pillarbox import Event, Handlers, Outbox, Relay
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.transports.handlers import HandlerContext, ReceivedEvent

outbox, handlers = Outbox(), Handlers()


@handlers.on("order.placed", name="mailer")
async def send_receipt(event: ReceivedEvent, context: HandlerContext) -> None:
    print("receipt for order", event.payload["id"])


async def main() -> None:
    store = SqliteStore("shop.db")
    await store.schema.apply()
    shop = sqlite3.connect("shop.db")
    shop.execute("CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY)")
    with shop:  # one transaction: the order and its event, or neither
        number = shop.execute("INSERT INTO orders DEFAULT VALUES").lastrowid
        outbox.record(shop, Event("order.placed", {"id": number}, aggregate_type="ORDER", aggregate_id=str(number)))
    shop.close()
    await Relay(store=store, transports={"handlers": handlers}).run_until_empty()
    await store.aclose()


if __name__ == "__main__":
    asyncio.run(main())
