"""Users that a proxy or the application has authenticated, and a console without a login."""

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Mount

from pillarbox.ops.console import Console, HostLogin, ProxyLogin, Role, User
from pillarbox.stores.sqlite import SqliteStore
from tests.console.conftest import LOCAL, Visit, Visitor
from tests.integration.cli.conftest import Stock


def proxy(addresses: list[str]) -> ProxyLogin:
    return ProxyLogin(addresses=addresses, user_header="X-User", role_header="X-Role", role="viewer")


async def test_the_header_of_the_proxy_is_trusted(visit: Visit, shop: Stock) -> None:
    visitor = await visit(shop, login=proxy(["127.0.0.0/8"]))
    visitor.client.headers.update({"x-user": "ada", "x-role": "operator"})
    answer = await visitor.post("/event/act", id="dead1", destination="orders", action="retry")
    assert answer.status_code == 303
    assert shop.ask("SELECT who FROM outbox_audit") == [("ada",)]


async def test_a_proxy_may_send_names_in_utf8(visit: Visit, shop: Stock) -> None:
    visitor = await visit(shop, login=proxy(["127.0.0.0/8"]))
    for sent in ("Zoë".encode(), "Zoë".encode("latin-1")):
        answer = await visitor.client.get("/", headers={b"x-user": sent})
        assert "<strong>Zoë</strong>" in answer.text


@pytest.mark.parametrize(
    ("addresses", "headers"),
    [
        (["10.0.0.7"], {"x-user": "ada"}),
        (["127.0.0.0/8"], {}),
        (["127.0.0.0/8"], {"x-user": ""}),
        (["127.0.0.0/8"], {"x-user": "ada", "x-role": "emperor"}),
    ],
)
async def test_headers_from_other_addresses_are_ignored(
    visit: Visit, shop: Stock, addresses: list[str], headers: dict[str, str]
) -> None:
    visitor = await visit(shop, login=proxy(addresses))
    assert (await visitor.client.get("/", headers=headers)).status_code == 401


async def test_a_mounted_console_uses_the_users_of_its_application(shop: Stock) -> None:
    async def who(request: Request) -> User | None:
        name = request.headers.get("x-test-user")
        return None if name is None else User(name=name, role=Role.OPERATOR)

    store = SqliteStore(shop.url)
    app = Starlette(routes=[Mount("/outbox", Console(store, login=HostLogin(who)))])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=LOCAL) as client:
        assert (await client.get("/outbox/")).status_code == 401
        client.headers["x-test-user"] = "grace"
        visitor = Visitor(client, store)
        page = await visitor.page_text("/outbox/events")
        assert 'href="/outbox/event?id=dead1&amp;destination=orders"' in page
        assert 'href="/outbox/static/console.css?v=' in page
        assert (await client.get("/outbox/static/console.css")).status_code == 200
        token = await visitor.token("/outbox/dead")
        form = {"token": token, "id": "dead1", "destination": "orders", "action": "retry"}
        answer = await client.post("/outbox/event/act", data=form)
        assert answer.headers["location"] == "/outbox/event?id=dead1"
    await store.aclose()
    assert shop.ask("SELECT who FROM outbox_audit") == [("grace",)]


async def test_without_a_login_only_local_host_names_are_accepted(visit: Visit, shop: Stock) -> None:
    visitor = await visit(shop)
    assert (await visitor.client.get("/", headers={"host": "evil.example:8980"})).status_code == 403
    assert (await visitor.client.get("/", headers={"host": "localhost:8980"})).status_code == 200
