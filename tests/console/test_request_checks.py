"""Every request is checked: its origin, its token, its method and its size."""

import pytest

from pillarbox.ops.console import NoLogin, UserLogin
from tests.console.accounts import log_in
from tests.console.conftest import Visit, states
from tests.integration.cli.conftest import Stock


@pytest.mark.parametrize(
    "headers",
    [{"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}],
)
async def test_a_form_of_another_site_is_rejected(visit: Visit, shop: Stock, headers: dict[str, str]) -> None:
    visitor = await visit(shop)
    form = {"token": await visitor.token("/dead"), "id": "dead1", "destination": "orders", "action": "retry"}
    assert (await visitor.client.post("/event/act", data=form, headers=headers)).status_code == 403
    assert states(shop, "dead1") == ["FAILED"]


@pytest.mark.parametrize("token", ["", "x", "e30.e30", None])
async def test_a_form_without_a_valid_token_is_rejected(visit: Visit, shop: Stock, token: str | None) -> None:
    form = {"id": "dead1", "destination": "orders", "action": "retry"} | ({} if token is None else {"token": token})
    answer = await (await visit(shop)).client.post("/event/act", data=form)
    assert answer.status_code == 403
    assert states(shop, "dead1") == ["FAILED"]


async def test_a_token_of_another_user_is_rejected(visit: Visit, shop: Stock, login: UserLogin) -> None:
    visitor = await visit(shop, login=login)
    await log_in(visitor, "ada")
    token = await visitor.token("/dead")
    await log_in(visitor, "olga")
    form = {"token": token, "id": "dead1", "destination": "orders", "action": "retry"}
    assert (await visitor.client.post("/event/act", data=form)).status_code == 403


async def test_a_get_request_never_writes(visit: Visit, shop: Stock) -> None:
    answer = await (await visit(shop)).client.get("/event/act?id=dead1&destination=orders&action=retry")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert states(shop, "dead1") == ["FAILED"]


async def test_every_response_has_the_security_headers(visit: Visit, shop: Stock) -> None:
    visitor = await visit(shop)
    for path in ("/", "/nowhere", "/api/v1/status", "/static/console.css", "/dead/export"):
        headers = (await visitor.client.get(path)).headers
        assert headers["content-security-policy"] == (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
            "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
        )
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["cache-control"] == ("public, max-age=86400" if "static" in path else "no-store")


async def test_a_body_is_limited_in_size(visit: Visit, shop: Stock) -> None:
    visitor = await visit(shop, login=NoLogin("ada"))
    form = {"token": await visitor.token("/dead"), "id": "x" * 3_000_000}
    assert (await visitor.client.post("/event/act", data=form)).status_code == 413
    assert (await visitor.client.post("/event/act", content=b"\0")).status_code == 415
