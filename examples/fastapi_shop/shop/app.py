"""`uvicorn shop.app:app`. With RELAY=lifespan the relay runs in this process, else run `pillarbox relay` beside it."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends, FastAPI, HTTPException
from sqlalchemy.ext.asyncio import AsyncSession

from pillarbox import Relay

from .database import engine, transaction
from .models import Order

Transaction = Annotated[AsyncSession, Depends(transaction, scope="function")]


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    if os.environ.get("RELAY") == "lifespan":
        async with Relay.from_settings():  # drains when the application stops
            yield
    else:
        yield
    await engine.dispose()


app = FastAPI(lifespan=lifespan)


@app.post("/orders/{customer}", status_code=201)
async def place(customer: str, session: Transaction) -> dict[str, int]:
    order = Order.place(customer)
    session.add(order)
    await session.flush()
    if customer == "mallory":
        raise HTTPException(402, "declined: neither the order nor its event is stored")
    return {"id": order.id}


@app.post("/orders/{number}/ship")
async def ship(number: int, session: Transaction) -> dict[str, str]:
    order = await session.get(Order, number, with_for_update=True)  # events of one order in the order of their commits
    if order is None:
        raise HTTPException(404, "no such order")
    order.ship()
    return {"state": order.state}
