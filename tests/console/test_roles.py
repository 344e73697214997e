"""Roles and rights: what a user sees and may do."""

import pytest

from pillarbox.core.event import Event
from pillarbox.ops.console import UserLogin
from tests.console.accounts import PASSWORD, log_in
from tests.console.conftest import Visit
from tests.integration.cli.conftest import Stock


@pytest.mark.parametrize(
    ("name", "path", "fields", "status"),
    [
        ("vera", "/event/act", {"id": "dead1", "destination": "orders", "action": "retry"}, 403),
        ("olga", "/event/act", {"id": "dead1", "destination": "orders", "action": "retry"}, 303),
        ("vera", "/destinations/override", {"destination": "orders", "action": "pause"}, 403),
        ("olga", "/destinations/override", {"destination": "orders", "action": "open"}, 403),
        ("ada", "/destinations/override", {"destination": "orders", "action": "open"}, 303),
    ],
)
async def test_actions_need_their_role(
    visit: Visit, shop: Stock, login: UserLogin, name: str, path: str, fields: dict[str, str], status: int
) -> None:
    visitor = await visit(shop, login=login)
    await log_in(visitor, name)
    assert (await visitor.post(path, **fields)).status_code == status


async def test_a_viewer_sees_no_button_of_an_operator(visit: Visit, shop: Stock, login: UserLogin) -> None:
    visitor = await visit(shop, login=login)
    await log_in(visitor, "vera")
    for path in ("/", "/event?id=dead1", "/dead", "/destinations", "/keys", "/relays"):
        forms = (await visitor.page_text(path)).count('method="post"')
        assert forms == 1, path  # to log out


async def test_payloads_need_their_own_right(visit: Visit, stock: Stock, login: UserLogin) -> None:
    stock.record(Event("order.placed", {"card": "4242"}, event_id="e", headers={"tenant": "north"}))
    visitor = await visit(stock, login=login)
    await log_in(visitor, "ada")
    page = await visitor.page_text("/event?id=e")
    assert "4242" not in page
    assert "north" not in page
    assert (await visitor.client.get("/event/payload?id=e")).status_code == 403
    assert "4242" not in (await visitor.client.get("/api/v1/event?id=e")).text
    await log_in(visitor, "olga")
    assert "4242" in await visitor.page_text("/event?id=e")
    assert (await visitor.client.get("/event/payload?id=e")).text == '{"card":"4242"}'


@pytest.mark.parametrize("path", ["/api/v1/status", "/metrics"])
async def test_a_script_authenticates_with_http_basic(visit: Visit, shop: Stock, login: UserLogin, path: str) -> None:
    visitor = await visit(shop, login=login)
    assert (await visitor.client.get(path, auth=("vera", PASSWORD))).status_code == 200
    for auth in (None, ("vera", "wrong")):
        answer = await visitor.client.get(path, auth=auth)
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, 'Basic realm="pillarbox"')
        assert answer.json() == {"error": "You are not logged in."}


async def test_a_page_request_gets_no_basic_challenge(visit: Visit, shop: Stock, login: UserLogin) -> None:
    visitor = await visit(shop, login=login)
    answer = await visitor.client.get("/api/v1/status", headers={"sec-fetch-site": "same-origin"})
    assert (answer.status_code, "www-authenticate" in answer.headers) == (401, False)


async def test_a_read_only_console_has_no_action(visit: Visit, shop: Stock) -> None:
    visitor = await visit(shop, read_only=True)
    for path in ("/", "/event?id=dead1", "/dead", "/destinations", "/keys", "/relays"):
        assert 'method="post"' not in await visitor.page_text(path)
    assert "/dead/edit" not in await visitor.page_text("/event?id=dead1")
    assert (await visitor.client.get("/dead/edit?dead_letter_id=1")).status_code == 404
    paths = ("/event/act", "/dead/decide", "/dead/edit", "/everything", "/api/v1/dead/retry", "/api/v1/dead/edit")
    for path in (*paths, "/destinations/override"):
        assert (await visitor.client.post(path, data={})).status_code == 404
    described = (await visitor.client.get("/api/v1/openapi.json")).json()
    assert [method for operations in described["paths"].values() for method in operations if method != "get"] == []
