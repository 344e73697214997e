"""A console over a store of each engine, and people who visit it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any, Protocol

import httpx
import pytest

from pillarbox.core.store import Store
from pillarbox.ops.console import Console, NoLogin
from pillarbox.ops.console.logins import Login
from pillarbox.stores.postgres import PostgresStore
from pillarbox.stores.sqlite import SqliteStore
from tests.integration.cli.conftest import Stock, shop, sqlite_url, stock, store_url, with_letters

__all__ = ["shop", "sqlite_url", "stock", "store_url", "with_letters"]

LOCAL = "http://127.0.0.1:8980"
_TOKEN = re.compile(r'<meta name="token" content="([^"]+)">')


class Visitor:
    """Somebody with a browser that runs no scripts."""

    def __init__(self, client: httpx.AsyncClient, store: Store) -> None:
        self.client = client
        self.store = store

    async def look(self, path: str) -> str:
        """The text of a page that must be there."""
        answer = await self.client.get(path)
        assert answer.status_code == 200, answer.text
        return answer.text

    async def token(self, path: str = "/") -> str:
        found = _TOKEN.search(await self.look(path))
        assert found is not None
        return found[1]

    async def post(self, path: str, **fields: Any) -> httpx.Response:
        """As a form of one of our own pages."""
        form = {"token": await self.token("/dead"), **fields}
        return await self.client.post(path, data=form, headers={"sec-fetch-site": "same-origin"})


def states(stock: Stock, *event_ids: str) -> list[str]:
    """The status of each, in order; '' where there is none."""
    found = dict(stock.ask("SELECT event_id, status FROM outbox_event"))
    return [found.get(event_id, "") for event_id in event_ids]


class Visit(Protocol):
    async def __call__(self, stock: Stock, *, login: Login | None = None, **settings: Any) -> Visitor: ...


@pytest.fixture
async def visit() -> AsyncIterator[Visit]:
    """Makes visitors of consoles over a stock; closes what they opened."""
    async with AsyncExitStack() as opened:

        async def make(stock: Stock, *, login: Login | None = None, **settings: Any) -> Visitor:
            store: Store = PostgresStore(stock.url) if stock.url.startswith("postgres") else SqliteStore(stock.url)
            opened.push_async_callback(store.aclose)
            console = Console(store, login=login or NoLogin("ada"), **settings)
            transport = httpx.ASGITransport(console)
            client = await opened.enter_async_context(httpx.AsyncClient(transport=transport, base_url=LOCAL))
            return Visitor(client, store)

        yield make
