"""A console over a store of each engine, and clients without JavaScript."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import urlencode

import httpx
import pytest
from jinja2 import BytecodeCache, Environment
from jinja2.bccache import Bucket

from pillarbox.admin.admin import AdminStore
from pillarbox.ops.console import Console, NoLogin, Role, UserLogin, UsersFile, context
from pillarbox.ops.console.logins import Login
from pillarbox.ops.console.users import write
from pillarbox.stores.postgres import PostgresStore
from pillarbox.stores.sqlite import SqliteStore
from tests.console.accounts import entry
from tests.console.serving import chromium, released_loop
from tests.integration.cli.conftest import Stock, shop, sqlite_url, stock, store_url, with_dead_letters
from tests.servers.availability import available

if TYPE_CHECKING:
    from playwright.sync_api import Browser

__all__ = ["shop", "sqlite_url", "stock", "store_url", "with_dead_letters"]

LOCAL = "http://127.0.0.1:8980"

_CONFIRMED = re.compile(r'<input type="hidden" name="(count|selection)" value="([^"]+)">')
_TOKEN = re.compile(r'<meta name="token" content="([^"]+)">')


class Visitor:
    """A client of the console without JavaScript."""

    def __init__(self, client: httpx.AsyncClient, store: AdminStore) -> None:
        self.client = client
        self.store = store

    async def page_text(self, path: str) -> str:
        """The text of a page that must be there."""
        answer = await self.client.get(path)
        assert answer.status_code == 200, answer.text
        return answer.text

    async def token(self, path: str = "/") -> str:
        found = _TOKEN.search(await self.page_text(path))
        assert found is not None
        return found[1]

    async def post(self, path: str, **fields: Any) -> httpx.Response:
        """As a form of one of our own pages."""
        form = {"token": await self.token("/dead"), **fields}
        return await self.client.post(path, data=form, headers={"sec-fetch-site": "same-origin"})

    async def confirmation(self, path: str, **asked: str) -> dict[str, str]:
        """The count and the selection that the page for confirming shows."""
        return dict(_CONFIRMED.findall(await self.page_text(f"{path}?{urlencode(asked)}")))

    async def confirm(self, path: str, *, entered: Mapping[str, str] | None = None, **asked: str) -> httpx.Response:
        """As the form of the page for confirming; entered: fields that its user adds or changes."""
        return await self.post(path, **asked | await self.confirmation(path, **asked) | dict(entered or {}))


def states(stock: Stock, *event_ids: str) -> list[str]:
    """The status of each, in order; '' where there is none."""
    found = dict(stock.ask("SELECT event_id, status FROM outbox_event"))
    return [found.get(event_id, "") for event_id in event_ids]


class Compiled(BytecodeCache):
    """The templates that any console of this process has compiled."""

    def __init__(self) -> None:
        self._code: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        if bucket.key in self._code:
            bucket.bytecode_from_string(self._code[bucket.key])

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._code[bucket.key] = bucket.bytecode_to_string()


@pytest.fixture(scope="session", autouse=True)
def compiled_templates() -> Iterator[None]:
    """Each test has a console of its own; to compile its templates takes longer than to draw ten pages."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(context, "Environment", partial(Environment, bytecode_cache=Compiled()))
        yield


class Visit(Protocol):
    async def __call__(self, stock: Stock, *, login: Login | None = None, **settings: Any) -> Visitor: ...


@pytest.fixture
async def visit() -> AsyncIterator[Visit]:
    """Makes visitors of consoles over a stock; closes what they opened."""
    async with AsyncExitStack() as opened:

        async def make(stock: Stock, *, login: Login | None = None, **settings: Any) -> Visitor:
            store: AdminStore = PostgresStore(stock.url) if stock.url.startswith("postgres") else SqliteStore(stock.url)
            opened.push_async_callback(store.aclose)
            console = Console(store, login=login or NoLogin("ada"), **settings)
            transport = httpx.ASGITransport(console)
            client = await opened.enter_async_context(httpx.AsyncClient(transport=transport, base_url=LOCAL))
            return Visitor(client, store)

        yield make


class Chromium(NamedTuple):
    """The browser of the session, between two tests."""

    browser: Browser
    released_loop: ExitStack


@pytest.fixture(scope="session")
def shared_chromium() -> Iterator[Chromium]:
    """Started at the first request. Its event loop is released unless a test uses it."""
    with available(chromium) as browser, ExitStack() as stack:
        stack.enter_context(released_loop())
        yield Chromium(browser, stack)


@pytest.fixture
def browser(shared_chromium: Chromium) -> Iterator[Browser]:
    """A real browser; a test makes profiles of its own in it. Nothing else may run an event loop meanwhile."""
    shared_chromium.released_loop.close()
    yield shared_chromium.browser
    for window in shared_chromium.browser.contexts:
        window.close()
    shared_chromium.released_loop.enter_context(released_loop())


@pytest.fixture
def users(tmp_path: Path) -> Path:
    entries = [entry("vera", Role.VIEWER), entry("olga", Role.OPERATOR, payloads=True), entry("ada", Role.ADMIN)]
    write(tmp_path / "users", {one.user.name: one for one in entries})
    return tmp_path / "users"


@pytest.fixture
def login(users: Path) -> UserLogin:
    return UserLogin(UsersFile(users))
