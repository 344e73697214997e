"""Probes of the console: without a login, and honest about the store."""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from pillarbox.ops.console import Console, HostLogin
from pillarbox.stores.postgres import PostgresStore
from pillarbox.stores.sqlite import SqliteStore
from tests.console.conftest import LOCAL
from tests.servers.availability import available
from tests.servers.postgres import PostgresServer


def client(console: Console) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(console), base_url=LOCAL)


@contextmanager
def stopped() -> Iterator[str]:
    """The URL of a database whose server has stopped."""
    with available(lambda: PostgresServer(durable=False)) as server:
        server.stop()
        yield server.url()


def rejecting() -> HostLogin:
    return HostLogin(lambda _: None)


async def test_probes_need_no_login_while_pages_do(postgres_url: str) -> None:
    store = PostgresStore(postgres_url)
    async with client(Console(store, login=rejecting())) as visitor:
        for path in ("/livez", "/readyz"):
            answer = await visitor.get(path)
            assert (answer.status_code, answer.json()) == (200, {"status": "UP"})
        assert (await visitor.get("/")).status_code in (401, 403)
    await store.aclose()


async def test_an_unavailable_store_makes_the_console_unready_and_not_dead() -> None:
    with stopped() as url:
        store = PostgresStore(url)
        async with client(Console(store, login=rejecting())) as visitor:
            assert (await visitor.get("/livez")).status_code == 200
            answer = await visitor.get("/readyz")
            assert (answer.status_code, answer.json()["status"]) == (503, "DOWN")
            assert "127.0.0.1" not in answer.text, "strangers learn nothing about the store"
        await store.aclose()


async def test_missing_tables_make_the_console_unready(tmp_path_factory: pytest.TempPathFactory) -> None:
    store = SqliteStore(f"sqlite:///{tmp_path_factory.mktemp('empty') / 'shop.db'}")
    async with client(Console(store, login=rejecting())) as visitor:
        assert (await visitor.get("/readyz")).status_code == 503
    await store.aclose()
