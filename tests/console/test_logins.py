"""Logins with name and password, and their sessions."""

import asyncio
from pathlib import Path

import pytest

from pillarbox.core.errors import ConfigurationError
from pillarbox.ops.console import ProxyLogin, Role, UserLogin, UsersFile
from pillarbox.ops.console.passwords import hashed
from pillarbox.ops.console.users import write
from pillarbox.testing.waiting import eventually
from tests.console.accounts import PASSWORD, entry, log_in
from tests.console.conftest import Visit
from tests.integration.cli.conftest import Stock


async def test_login_redirects_to_the_requested_page(visit: Visit, shop: Stock, login: UserLogin) -> None:
    visitor = await visit(shop, login=login)
    answer = await visitor.client.get("/events?status=FAILED")
    assert (answer.status_code, answer.headers["location"]) == (303, "/login?next=%2Fevents%3Fstatus%3DFAILED")
    answer = await log_in(visitor, "vera", wanted="/events?status=FAILED")
    assert answer.headers["location"] == "/events?status=FAILED"
    assert "dead1" in await visitor.page_text("/events?status=FAILED")


async def test_the_session_cookie_is_http_only_and_same_site(visit: Visit, shop: Stock, login: UserLogin) -> None:
    visitor = await visit(shop, login=login)
    plain = (await log_in(visitor, "vera")).headers["set-cookie"]
    assert "HttpOnly" in plain
    assert "samesite=strict" in plain.lower()
    assert "Secure" not in plain
    visitor.client.headers["x-forwarded-proto"] = "https"
    assert "Secure" in (await log_in(visitor, "olga")).headers["set-cookie"]
    cookie = visitor.client.cookies["pillarbox_session"]
    visitor.client.headers["cookie"] = f"pillarbox_session={cookie}"
    done = await visitor.post("/event/act", id="dead1", destination="orders", action="retry")
    assert done.headers["set-cookie"].startswith("pillarbox_notice=")
    assert "Secure" in done.headers["set-cookie"]


@pytest.mark.parametrize("wanted", ["//evil.example", "https://evil.example", "/\\evil.example", "\\\\evil.example"])
async def test_a_login_never_redirects_to_another_site(
    visit: Visit, shop: Stock, login: UserLogin, wanted: str
) -> None:
    answer = await log_in(await visit(shop, login=login), "vera", wanted=wanted)
    assert answer.headers["location"] == "/"


@pytest.mark.parametrize(("name", "password"), [("vera", "wrong"), ("unknown", PASSWORD), ("", "")])
async def test_a_wrong_password_is_rejected(
    visit: Visit, shop: Stock, login: UserLogin, name: str, password: str
) -> None:
    visitor = await visit(shop, login=login)
    answer = await log_in(visitor, name, password)
    assert answer.status_code == 401
    assert "Wrong name or password" in answer.text
    assert (await visitor.client.get("/")).status_code == 303


async def test_a_logout_survives_a_restart(visit: Visit, stock: Stock, users: Path) -> None:
    secret = "a secret of sixteen characters or more"
    first = await visit(stock, login=UserLogin(UsersFile(users)), secret=secret)
    await log_in(first, "olga")
    kept = first.client.cookies["pillarbox_session"]
    assert (await first.post("/logout")).status_code == 303
    again = await visit(stock, login=UserLogin(UsersFile(users)), secret=secret)
    cookie = {"cookie": f"pillarbox_session={kept}"}
    assert (await again.client.get("/events", headers=cookie)).status_code == 303
    await log_in(again, "olga")
    assert "Events" in await again.page_text("/events")
    assert stock.ask("SELECT who, what FROM outbox_audit") == [("olga", "logout")]


async def test_the_login_accepts_forms_only(visit: Visit, shop: Stock, login: UserLogin) -> None:
    visitor = await visit(shop, login=login)
    answer = await visitor.client.post("/login", json={"name": "vera", "password": PASSWORD})
    assert (answer.status_code, "set-cookie" in answer.headers) == (415, False)
    assert (await log_in(visitor, "vera\0")).status_code == 400


async def test_an_error_hides_the_path_of_the_users_file(
    visit: Visit, shop: Stock, login: UserLogin, users: Path, caplog: pytest.LogCaptureFixture
) -> None:
    visitor = await visit(shop, login=login)
    await asyncio.to_thread(users.unlink)
    answer = await log_in(visitor, "vera")
    assert (answer.status_code, str(users) in answer.text) == (500, False)
    assert str(users) in caplog.text


async def test_a_session_ends_with_the_user_or_the_password(
    visit: Visit, shop: Stock, login: UserLogin, users: Path
) -> None:
    visitor = await visit(shop, login=login)
    await log_in(visitor, "vera")
    await visitor.page_text("/")
    write(users, {"vera": entry("vera", Role.VIEWER, known=hashed("another password"))})
    assert (await visitor.client.get("/")).status_code == 303


async def test_a_session_expires(visit: Visit, shop: Stock, login: UserLogin) -> None:
    visitor = await visit(shop, login=login, session="1ms")
    answer = await log_in(visitor, "vera")
    cookie = answer.headers["set-cookie"].partition(";")[0]

    async def is_over() -> bool:
        return (await visitor.client.get("/", headers={"cookie": cookie})).status_code == 303

    await eventually(is_over)


async def test_logging_out_ends_the_session(visit: Visit, shop: Stock, login: UserLogin) -> None:
    visitor = await visit(shop, login=login)
    kept = (await log_in(visitor, "olga")).headers["set-cookie"].partition(";")[0]
    other = (await log_in(visitor, "olga")).headers["set-cookie"].partition(";")[0]
    visitor.client.cookies.clear()
    visitor.client.headers["cookie"] = kept
    assert (await visitor.post("/logout")).status_code == 303
    assert (await visitor.client.get("/")).status_code == 303
    visitor.client.headers["cookie"] = other
    assert (await visitor.client.get("/")).status_code == 200


def test_a_login_without_users_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="there is no users file"):
        UsersFile(tmp_path / "users")
    (tmp_path / "users").write_text("# no users\n")
    with pytest.raises(ConfigurationError, match="there are no users"):
        UserLogin(UsersFile(tmp_path / "users"))
    with pytest.raises(ConfigurationError, match="needs the addresses of that proxy"):
        ProxyLogin(addresses=[], user_header="X-User")
    with pytest.raises(ConfigurationError, match="is not the address of a proxy"):
        ProxyLogin(addresses=["everybody"], user_header="X-User")
