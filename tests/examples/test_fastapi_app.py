"""The FastAPI example: the relay lives with the application."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import httpx
import pytest

from examples.fastapi_app.app import create_app
from pillarbox.testing.waiting import eventually


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


@asynccontextmanager
async def serving(database: Path) -> AsyncIterator[httpx.AsyncClient]:
    """The application from its start to its end, and a client of it."""
    app = create_app(database)
    client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://shop")
    async with app.router.lifespan_context(app), client:
        yield client


async def test_the_relay_of_the_lifespan_delivers_an_order_to_its_handler(database: Path) -> None:
    async with serving(database) as client:
        placed = await client.post("/orders", json={"customer": "ada", "total": 120})
        assert placed.status_code == 201

        async def receipt() -> object:
            return (await client.get(f"/orders/{placed.json()['id']}")).json()["receipt"]

        assert await eventually(receipt) == "ada owes 120"


async def test_an_order_that_was_declined_leaves_neither_a_row_nor_an_event(database: Path) -> None:
    async with serving(database) as client:
        assert (await client.post("/orders", json={"customer": "mallory", "total": 5000})).status_code == 402
        assert (await client.get("/orders/1")).status_code == 404
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT count(*) FROM outbox_event").fetchone() == (0,)


async def test_an_application_that_stops_drains_and_leaves(database: Path) -> None:
    async with serving(database) as client:
        await client.post("/orders", json={"customer": "ada", "total": 1})
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT count(*) FROM outbox_relay").fetchone() == (0,)
