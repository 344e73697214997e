"""The programs of docs/how-to/fastapi.md: a request is one transaction, and the relay of the lifespan sends events."""

import sqlite3
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager, closing
from pathlib import Path
from types import ModuleType

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy.event import listen

from pillarbox.stores.sqlite import SqliteStore
from pillarbox.testing.waiting import eventually
from tests.docs.pages import ROOT, blocks

[REQUEST, LIFESPAN] = blocks(ROOT / "docs/how-to/fastapi.md", "python")
HANDLERS = """
from pillarbox import Handlers

handlers, handled = Handlers(), []


@handlers.on("order.placed", name="mailer")
async def mail(event, context):
    handled.append(event.payload["id"])
"""

Load = Callable[[str, str], ModuleType]


@pytest.fixture
async def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """`load(name, program)` imports a program from the folder of a shop with its tables."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("PILLARBOX_STORE", "PILLARBOX_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    async with aclosing(SqliteStore(tmp_path / "shop.db")) as store:
        await store.schema.apply()
    with closing(sqlite3.connect("shop.db")) as shop, shop:
        shop.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")

    def load(name: str, program: str) -> ModuleType:
        (tmp_path / f"{name}.py").write_text(program, encoding="utf-8")
        monkeypatch.delitem(sys.modules, name, raising=False)
        return __import__(name)

    return load


@asynccontextmanager
async def serving(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://shop") as client,
    ):
        yield client


def events() -> list[tuple[str, str]]:
    with closing(sqlite3.connect("shop.db")) as shop:
        return shop.execute("SELECT key, status FROM outbox_event").fetchall()


async def test_a_request_commits_its_row_and_its_event_together(load: Load) -> None:
    shop = load("shop_request", REQUEST)
    async with serving(shop.app) as client:
        assert (await client.post("/orders/42")).status_code == 201
        assert (await client.post("/orders/42")).status_code == 500  # the order exists
    await shop.engine.dispose()
    assert events() == [("order:42", "PENDING")]


async def test_a_failed_commit_is_an_error_response(load: Load) -> None:
    shop = load("shop_request", REQUEST)
    with closing(sqlite3.connect("shop.db")) as database, database:
        # A deferred constraint fails at the commit, after the function of the request has returned.
        database.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY)")
        database.execute("DROP TABLE orders")
        database.execute(
            "CREATE TABLE orders (id INTEGER PRIMARY KEY REFERENCES customers DEFERRABLE INITIALLY DEFERRED)"
        )
    listen(shop.engine.sync_engine, "connect", lambda raw, _: raw.execute("PRAGMA foreign_keys = ON"))
    async with serving(shop.app) as client:
        assert (await client.post("/orders/42")).status_code == 500
    await shop.engine.dispose()
    assert events() == []


async def test_the_relay_of_the_lifespan_sends_the_event(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    shop, handled = load("shop_request", REQUEST), load("shop_events", HANDLERS).handled
    async with serving(shop.app) as client:
        await client.post("/orders/42")
    await shop.engine.dispose()
    monkeypatch.setenv("DATABASE_URL", "sqlite+aiosqlite:///shop.db")
    monkeypatch.setenv("PILLARBOX_TRANSPORT", "handlers:shop_events:handlers")

    async def sent() -> list[int]:
        return list(handled)

    async with serving(load("shop_lifespan", LIFESPAN).app):
        assert await eventually(sent) == [42]
