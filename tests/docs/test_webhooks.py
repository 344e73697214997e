"""The receiver of "Send webhooks" receives what a relay sends, and handles each event once."""

import asyncio
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from aiohttp import ClientSession

from pillarbox import Destination, Event, Outbox, Relay, Route
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.testing.waiting import eventually
from pillarbox.transports.webhook import WebhookTransport
from tests.docs.pages import ROOT, blocks
from tests.servers.ports import free_port

RECEIVER = blocks(ROOT / "docs/how-to/webhooks.md", "python")[-1]
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@pytest.fixture
async def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    """The receiver of the page, served by uvicorn in the folder of the test."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "billing.py").write_text(RECEIVER, encoding="utf-8")
    process = await asyncio.create_subprocess_exec(sys.executable, "billing.py")
    assert await process.wait() == 0
    namespace: dict[str, Any] = {"__name__": "billing"}
    exec(compile(RECEIVER, "billing.py", "exec"), namespace)  # noqa: S102 - the code of our own page
    port = free_port()
    async with serving(uvicorn.Config(namespace["app"], port=port, log_level="error")):
        yield f"http://127.0.0.1:{port}/hooks"


@asynccontextmanager
async def serving(config: uvicorn.Config) -> AsyncIterator[None]:
    server = uvicorn.Server(config)
    task = asyncio.create_task(server._serve())
    try:
        await eventually(lambda: server.started, within=30)
        yield
    finally:
        server.should_exit = True
        with suppress(asyncio.CancelledError):
            await task


def invoices() -> list[int]:
    with closing(sqlite3.connect("billing.db")) as connection:
        return [order for (order,) in connection.execute("SELECT order_id FROM invoice ORDER BY order_id")]


async def test_each_event_of_a_relay_is_handled_once(url: str, tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "shop.db")
    await store.schema.apply()
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection, connection:
        Outbox().record(connection, *(Event("order.placed", {"id": n}, event_id=f"e{n}") for n in range(5)))
    transport = WebhookTransport(url, secrets=[SECRET], allow_networks=["127.0.0.0/8"])
    relay = Relay(
        store=store,
        transports={"partner": transport},
        destinations={"orders": Destination(WebhookTransport.to("/orders"), body="envelope")},
        routes=[Route(to=["orders"])],
    )
    await relay.run_until_empty()
    assert invoices() == [0, 1, 2, 3, 4]
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection, connection:
        Outbox().record(connection, Event("order.placed", {"id": 77}, event_id="e0"))
    await store.aclose()
    again = SqliteStore(tmp_path / "shop.db", ledger=False)
    await Relay(
        store=again,
        transports={"partner": transport},
        destinations={"orders": Destination(WebhookTransport.to("/orders"), body="envelope")},
        routes=[Route(to=["orders"])],
    ).run_until_empty()
    await again.aclose()
    await transport.aclose()
    assert invoices() == [0, 1, 2, 3, 4], "an event with the same id has no second effect"


async def test_a_request_that_is_not_signed_is_refused(url: str) -> None:
    async with ClientSession() as session, session.post(f"{url}/orders", data=b"{}") as response:
        assert response.status == 400
    assert invoices() == []
