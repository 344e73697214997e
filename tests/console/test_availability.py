"""A store that is unavailable, locked or slow: every request gets a response in time, with the next step."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from typing import Any

import asyncpg
import httpx
import psycopg
import pytest
from starlette.applications import Starlette
from starlette.responses import Response

from pillarbox.core.errors import StoreUnavailableError
from pillarbox.ops.console import Console, NoLogin
from pillarbox.ops.console.request import ConsoleRequest, page
from pillarbox.ops.console.statistics import SharedRead
from pillarbox.ops.health import take_snapshot
from pillarbox.stores.memory import MemoryStore
from pillarbox.stores.postgres import PostgresStore
from pillarbox.stores.sqlite import SqliteStore
from tests.console.conftest import LOCAL, Visit, Visitor
from tests.integration.cli.conftest import Stock


@pytest.mark.parametrize("path", ["/dead/export", "/audit/export"])
async def test_an_export_that_fails_is_an_error_response(
    visit: Visit, tmp_path_factory: pytest.TempPathFactory, path: str
) -> None:
    empty = Stock(f"sqlite:///{tmp_path_factory.mktemp('empty') / 'shop.db'}")
    answer = await (await visit(empty)).client.get(path)
    assert answer.status_code == 503
    assert "content-disposition" not in answer.headers


async def test_the_api_says_whether_a_request_may_succeed_later(
    visit: Visit, tmp_path_factory: pytest.TempPathFactory, unreachable: PostgresStore
) -> None:
    empty = Stock(f"sqlite:///{tmp_path_factory.mktemp('empty') / 'shop.db'}")
    without_tables = await (await visit(empty)).client.get("/api/v1/events")
    transport = httpx.ASGITransport(Console(unreachable, login=NoLogin("ada")))
    async with httpx.AsyncClient(transport=transport, base_url=LOCAL) as client:
        without_server = await client.get("/api/v1/events")
    assert (without_tables.status_code, without_tables.json()["retryable"]) == (503, False)
    assert (without_server.status_code, without_server.json()["retryable"]) == (503, True)


@pytest.fixture
async def unreachable() -> AsyncIterator[PostgresStore]:
    store = PostgresStore("postgresql://127.0.0.1:1/shop")
    yield store
    await store.aclose()


async def test_a_page_times_out_and_offers_a_reload() -> None:
    async def never(visit: ConsoleRequest) -> Response:
        await asyncio.Event().wait()
        raise AssertionError("no test sets it")

    console = Starlette(routes=[page("/slow", never, timeout=0.01)])
    console.state.context = Console(MemoryStore(), login=NoLogin("ada")).context
    async with httpx.AsyncClient(transport=httpx.ASGITransport(console), base_url=LOCAL) as client:
        answer = await client.get("/slow?type=a&key=b")
    assert answer.status_code == 503
    assert "the store did not respond within 0.01 s" in answer.text
    assert 'href="/slow?type=a&amp;key=b">Reload</a>' in answer.text


async def test_concurrent_requests_share_the_error_of_a_snapshot(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    fetch = asyncpg.Connection.fetch

    async def noting(connection: Any, query: str, *arguments: Any, **options: Any) -> Any:
        sent.append(query)
        return await fetch(connection, query, *arguments, **options)

    monkeypatch.setattr(asyncpg.Connection, "fetch", noting)
    store = PostgresStore(postgres_url, statement_timeout="100ms")
    cache = SharedRead(lambda: take_snapshot(store))
    with psycopg.connect(postgres_url) as holder:
        holder.execute("LOCK TABLE outbox_message IN ACCESS EXCLUSIVE MODE")
        found = await asyncio.gather(*(cache.get() for _ in range(10)), return_exceptions=True)
        asked = len(sent)
    assert {type(one) for one in found} == {StoreUnavailableError}
    sent.clear()
    cache.forget()
    await cache.get()
    await store.aclose()
    assert asked <= len(sent)


@pytest.fixture
async def visitor_with_short_timeout(sqlite_url: str) -> AsyncIterator[Visitor]:
    """A visitor of a console that hardly waits for a lock."""
    store = SqliteStore(sqlite_url, busy_timeout="10ms")
    await store.schema.apply()
    transport = httpx.ASGITransport(Console(store, login=NoLogin("ada")))
    async with httpx.AsyncClient(transport=transport, base_url=LOCAL) as client:
        yield Visitor(client, store)
    await store.aclose()


async def test_a_locked_store_says_that_the_console_does_not_retry(
    visitor_with_short_timeout: Visitor, sqlite_url: str
) -> None:
    token = await visitor_with_short_timeout.token("/dead")
    with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        answer = await visitor_with_short_timeout.client.post("/everything", data={"token": token, "action": "pause"})
    assert answer.status_code == 503
    assert "was locked by another writer" in answer.text
    assert "The console does not retry" in answer.text
    assert "retrying" not in answer.text
    assert "Reload</a>" not in answer.text
