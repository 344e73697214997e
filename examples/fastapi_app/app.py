"""The web side: `uvicorn examples.fastapi_app.app:app`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

from examples.fastapi_app.shop import Declined, Order, Shop
from pillarbox import Handlers, Relay
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.telemetry.logs import RelayLog
from pillarbox.transports.handlers import HandlerContext, ReceivedEvent


class Wish(BaseModel):
    """The order of a customer."""

    customer: str
    total: int


def make_handlers(shop: Shop) -> Handlers:
    handlers = Handlers()

    @handlers.on("order.placed", name="invoicing")
    def write_receipt(event: ReceivedEvent, context: HandlerContext) -> None:
        order = event.payload
        shop.write_receipt(order["id"], f"{order['customer']} owes {order['total']}")

    return handlers


def create_app(database: Path) -> FastAPI:
    shop = Shop(database)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with aclosing(SqliteStore(database)) as store:
            await store.schema.apply()
            shop.make_tables()
            # It logs failures. At the end of the block it drains: it finishes what is in flight.
            transports = {"handlers": make_handlers(shop)}
            async with Relay(store=store, transports=transports, observers=[RelayLog()]):
                yield

    app = FastAPI(lifespan=lifespan)

    @app.post("/orders", status_code=201)
    def place(wish: Wish) -> dict[str, int]:
        try:
            return {"id": shop.place(wish.customer, wish.total)}
        except Declined:
            raise HTTPException(402, "the order was declined; neither the order nor its event was stored") from None

    @app.get("/orders/{number}")
    def show(number: int) -> Order:
        if (order := shop.find(number)) is None:
            raise HTTPException(404, "no such order")
        return order

    return app


app = create_app(Path("shop.db"))
