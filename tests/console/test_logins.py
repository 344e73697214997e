"""Who gets in, who may do what, and what keeps everybody else out."""

import asyncio
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Mount

from pillarbox.core.errors import ConfigurationError
from pillarbox.core.event import Event
from pillarbox.ops.console import Console, HostLogin, NoLogin, ProxyLogin, Role, User, UserLogin, UsersFile
from pillarbox.ops.console.from_settings import make_login
from pillarbox.ops.console.logins import MAX_WAITING, TooManyAttemptsError
from pillarbox.ops.console.passwords import hashed
from pillarbox.ops.console.throttle import ATTEMPTS, SLOWEST_ADDRESS
from pillarbox.ops.console.users import UserEntry, write
from pillarbox.stores.sqlite import SqliteStore
from tests.console.conftest import LOCAL, Visit, Visitor, states
from tests.integration.cli.conftest import Stock
from tests.unit.ops.console.test_sessions import Clock
from tests.unit.ops.settings.loading import load

PASSWORD = "correct horse battery"
HASH = hashed(PASSWORD)


def user(name: str, role: Role, *, payloads: bool = False, known: str = HASH) -> UserEntry:
    return UserEntry(user=User(name=name, role=role, payloads=payloads), hash=known)


@pytest.fixture
def users(tmp_path: Path) -> Path:
    people = [user("vera", Role.VIEWER), user("olga", Role.OPERATOR, payloads=True), user("ada", Role.ADMIN)]
    write(tmp_path / "users", {one.user.name: one for one in people})
    return tmp_path / "users"


@pytest.fixture
def login(users: Path) -> UserLogin:
    return UserLogin(UsersFile(users))


async def enter(visitor: Visitor, name: str, password: str = PASSWORD, wanted: str = "/") -> httpx.Response:
    return await visitor.client.post("/login", data={"name": name, "password": password, "next": wanted})


async def test_a_stranger_is_led_to_the_login_and_on_to_the_page_he_wanted(
    visit: Visit, shop: Stock, login: UserLogin
) -> None:
    visitor = await visit(shop, login=login)
    answer = await visitor.client.get("/events?status=FAILED")
    assert (answer.status_code, answer.headers["location"]) == (303, "/login?next=%2Fevents%3Fstatus%3DFAILED")
    answer = await enter(visitor, "vera", wanted="/events?status=FAILED")
    assert answer.headers["location"] == "/events?status=FAILED"
    assert "dead1" in await visitor.look("/events?status=FAILED")


async def test_the_cookie_is_out_of_reach_for_scripts_and_other_sites(
    visit: Visit, shop: Stock, login: UserLogin
) -> None:
    visitor = await visit(shop, login=login)
    plain = (await enter(visitor, "vera")).headers["set-cookie"]
    assert "HttpOnly" in plain
    assert "samesite=strict" in plain.lower()
    assert "Secure" not in plain
    visitor.client.headers["x-forwarded-proto"] = "https"
    assert "Secure" in (await enter(visitor, "olga")).headers["set-cookie"]
    cookie = visitor.client.cookies["pillarbox_session"]
    visitor.client.headers["cookie"] = f"pillarbox_session={cookie}"
    done = await visitor.post("/event/act", id="dead1", destination="orders", do="retry")
    assert done.headers["set-cookie"].startswith("pillarbox_notice=")
    assert "Secure" in done.headers["set-cookie"]


@pytest.mark.parametrize("wanted", ["//evil.example", "https://evil.example", "/\\evil.example", "\\\\evil.example"])
async def test_a_login_never_leads_to_another_site(visit: Visit, shop: Stock, login: UserLogin, wanted: str) -> None:
    answer = await enter(await visit(shop, login=login), "vera", wanted=wanted)
    assert answer.headers["location"] == "/"


@pytest.mark.parametrize(("name", "password"), [("vera", "wrong"), ("nobody", PASSWORD), ("", "")])
async def test_a_wrong_password_does_not_get_in(
    visit: Visit, shop: Stock, login: UserLogin, name: str, password: str
) -> None:
    visitor = await visit(shop, login=login)
    answer = await enter(visitor, name, password)
    assert answer.status_code == 401
    assert "Wrong name or password" in answer.text
    assert (await visitor.client.get("/")).status_code == 303


async def test_guessing_is_stopped_even_if_the_next_guess_is_right(visit: Visit, shop: Stock, login: UserLogin) -> None:
    visitor = await visit(shop, login=login)
    tries = [(await enter(visitor, "vera", f"guess {number}")).status_code for number in range(10)]
    assert tries == [401] * 10
    assert (await enter(visitor, "vera")).status_code == 429
    # Whoever else comes from that address, a script with HTTP Basic among them, is not held up by it.
    script = await visitor.client.get("/api/v1/status", auth=("olga", PASSWORD))
    assert script.status_code == 200


async def test_hundreds_of_wrong_passwords_lock_nobody_out(visit: Visit, shop: Stock, login: UserLogin) -> None:
    for number in range(1000):
        for name in ("vera", "olga", "ada"):
            login._throttle.add_failure(address=f"203.0.113.{number % 100}", name=name)
    visitor = await visit(shop, login=login)
    assert (await enter(visitor, "vera")).status_code == 303
    assert (await visitor.client.get("/api/v1/status", auth=("ada", PASSWORD))).status_code == 200


async def test_an_address_that_guesses_is_slowed_down_whatever_the_name(users: Path) -> None:
    clock = Clock()
    login = UserLogin(UsersFile(users), clock=clock)
    for number in range(1000):
        login._throttle.add_failure(address="203.0.113.9", name=f"name {number}")
    for address, waited in (("203.0.113.10", 0), ("203.0.113.9", SLOWEST_ADDRESS)):
        begun = clock.monotonic()
        assert await login.check("vera", PASSWORD, address=address) is not None
        assert clock.monotonic() - begun == waited


async def test_few_may_wait_at_an_address_that_guesses(users: Path) -> None:
    login = UserLogin(UsersFile(users), clock=Clock())
    for number in range(ATTEMPTS):
        login._throttle.add_failure(address="203.0.113.9", name=f"name {number}")
    guesses = (login.check(f"name {number}", "a guess", address="203.0.113.9") for number in range(100, 120))
    answers = await asyncio.gather(*guesses, return_exceptions=True)
    assert [type(answer) for answer in answers] == [type(None)] * MAX_WAITING + [TooManyAttemptsError] * (
        20 - MAX_WAITING
    )


@pytest.mark.parametrize("held_in", ["file", "variable"])
async def test_behind_a_trusted_proxy_each_client_counts_for_itself(
    visit: Visit, shop: Stock, users: Path, held_in: str
) -> None:
    people = str(users) if held_in == "file" else await asyncio.to_thread(users.read_text)
    given = {f"PILLARBOX_CONSOLE__USERS{'_FILE' if held_in == 'file' else ''}": people}
    settings = load(**given, PILLARBOX_CONSOLE__TRUSTED_PROXIES="10.0.0.7,127.0.0.1").console
    visitor = await visit(shop, login=make_login(settings))
    visitor.client.headers["x-forwarded-for"] = "203.0.113.9"
    tries = [(await enter(visitor, "vera", f"guess {number}")).status_code for number in range(11)]
    assert tries == [401] * 10 + [429]
    visitor.client.headers["x-forwarded-for"] = "203.0.113.10"
    assert (await enter(visitor, "vera")).status_code == 303


async def test_a_logout_outlives_the_process(visit: Visit, stock: Stock, users: Path) -> None:
    secret = "a secret of sixteen characters or more"
    first = await visit(stock, login=UserLogin(UsersFile(users)), secret=secret)
    await enter(first, "olga")
    kept = first.client.cookies["pillarbox_session"]
    assert (await first.post("/logout")).status_code == 303
    again = await visit(stock, login=UserLogin(UsersFile(users)), secret=secret)
    cookie = {"cookie": f"pillarbox_session={kept}"}
    assert (await again.client.get("/events", headers=cookie)).status_code == 303
    await enter(again, "olga")
    assert "Events" in await again.look("/events")
    assert stock.ask("SELECT who, what FROM outbox_audit") == [("olga", "logout")]


async def test_the_login_reads_its_form_and_nothing_else(visit: Visit, shop: Stock, login: UserLogin) -> None:
    visitor = await visit(shop, login=login)
    answer = await visitor.client.post("/login", json={"name": "vera", "password": PASSWORD})
    assert (answer.status_code, "set-cookie" in answer.headers) == (415, False)
    assert (await enter(visitor, "vera\0")).status_code == 400


async def test_guesses_that_come_at_once_are_stopped_too(visit: Visit, shop: Stock, login: UserLogin) -> None:
    visitor = await visit(shop, login=login)
    answers = await asyncio.gather(*(enter(visitor, "vera", f"guess {number}") for number in range(30)))
    tried = [answer.status_code for answer in answers].count(401)
    assert 10 <= tried <= 11  # two are tried beside each other
    assert (await enter(visitor, "vera")).status_code == 429


async def test_a_script_may_send_many_requests_at_once(visit: Visit, shop: Stock, login: UserLogin) -> None:
    visitor = await visit(shop, login=login)
    asked = [visitor.client.get("/api/v1/status", auth=("vera", PASSWORD)) for _ in range(15)]
    assert {answer.status_code for answer in await asyncio.gather(*asked)} == {200}


async def test_nobody_is_told_where_the_users_are(
    visit: Visit, shop: Stock, login: UserLogin, users: Path, caplog: pytest.LogCaptureFixture
) -> None:
    visitor = await visit(shop, login=login)
    await asyncio.to_thread(users.unlink)
    answer = await enter(visitor, "vera")
    assert (answer.status_code, str(users) in answer.text) == (500, False)
    assert str(users) in caplog.text


async def test_a_login_ends_with_the_user_and_with_the_password(
    visit: Visit, shop: Stock, login: UserLogin, users: Path
) -> None:
    visitor = await visit(shop, login=login)
    await enter(visitor, "vera")
    await visitor.look("/")
    write(users, {"vera": user("vera", Role.VIEWER, known=hashed("another password"))})
    assert (await visitor.client.get("/")).status_code == 303


async def test_a_login_ends_by_itself(visit: Visit, shop: Stock, login: UserLogin) -> None:
    visitor = await visit(shop, login=login, session=0)
    answer = await enter(visitor, "vera")
    cookie = answer.headers["set-cookie"].partition(";")[0]
    assert (await visitor.client.get("/", headers={"cookie": cookie})).status_code == 303


async def test_logging_out_ends_the_session(visit: Visit, shop: Stock, login: UserLogin) -> None:
    visitor = await visit(shop, login=login)
    kept = (await enter(visitor, "olga")).headers["set-cookie"].partition(";")[0]
    other = (await enter(visitor, "olga")).headers["set-cookie"].partition(";")[0]
    visitor.client.cookies.clear()
    visitor.client.headers["cookie"] = kept
    assert (await visitor.post("/logout")).status_code == 303
    assert (await visitor.client.get("/")).status_code == 303
    visitor.client.headers["cookie"] = other
    assert (await visitor.client.get("/")).status_code == 200


@pytest.mark.parametrize(
    ("name", "path", "fields", "status"),
    [
        ("vera", "/event/act", {"id": "dead1", "destination": "orders", "do": "retry"}, 403),
        ("olga", "/event/act", {"id": "dead1", "destination": "orders", "do": "retry"}, 303),
        ("vera", "/destinations/override", {"destination": "orders", "do": "pause"}, 403),
        ("olga", "/destinations/override", {"destination": "orders", "do": "open"}, 403),
        ("ada", "/destinations/override", {"destination": "orders", "do": "open"}, 303),
    ],
)
async def test_roles(
    visit: Visit, shop: Stock, login: UserLogin, name: str, path: str, fields: dict[str, str], status: int
) -> None:
    visitor = await visit(shop, login=login)
    await enter(visitor, name)
    assert (await visitor.post(path, **fields)).status_code == status


async def test_a_viewer_is_shown_no_button_that_would_not_work(visit: Visit, shop: Stock, login: UserLogin) -> None:
    visitor = await visit(shop, login=login)
    await enter(visitor, "vera")
    for path in ("/", "/event?id=dead1", "/dead", "/destinations", "/keys", "/relays"):
        forms = (await visitor.look(path)).count('method="post"')
        assert forms == 1, path  # to log out


async def test_payloads_are_a_right_of_their_own(visit: Visit, stock: Stock, login: UserLogin) -> None:
    stock.record(Event("order.placed", {"card": "4242"}, event_id="e", headers={"tenant": "north"}))
    visitor = await visit(stock, login=login)
    await enter(visitor, "ada")
    page = await visitor.look("/event?id=e")
    assert "4242" not in page
    assert "north" not in page
    assert (await visitor.client.get("/event/payload?id=e")).status_code == 403
    assert "4242" not in (await visitor.client.get("/api/v1/event?id=e")).text
    await enter(visitor, "olga")
    assert "4242" in await visitor.look("/event?id=e")
    assert (await visitor.client.get("/event/payload?id=e")).text == '{"card":"4242"}'


@pytest.mark.parametrize("path", ["/api/v1/status", "/metrics"])
async def test_a_script_sends_its_password_with_each_request(
    visit: Visit, shop: Stock, login: UserLogin, path: str
) -> None:
    visitor = await visit(shop, login=login)
    assert (await visitor.client.get(path, auth=("vera", PASSWORD))).status_code == 200
    for auth in (None, ("vera", "wrong")):
        answer = await visitor.client.get(path, auth=auth)
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, 'Basic realm="pillarbox"')
        assert answer.json() == {"error": "You are not logged in."}


async def test_a_browser_is_not_made_to_ask_for_a_password_itself(visit: Visit, shop: Stock, login: UserLogin) -> None:
    visitor = await visit(shop, login=login)
    answer = await visitor.client.get("/api/v1/status", headers={"sec-fetch-site": "same-origin"})
    assert (answer.status_code, "www-authenticate" in answer.headers) == (401, False)


def proxy(addresses: list[str]) -> ProxyLogin:
    return ProxyLogin(addresses=addresses, user_header="X-User", role_header="X-Role", role="viewer")


async def test_the_header_of_the_proxy_is_believed(visit: Visit, shop: Stock) -> None:
    visitor = await visit(shop, login=proxy(["127.0.0.0/8"]))
    visitor.client.headers.update({"x-user": "ada", "x-role": "operator"})
    answer = await visitor.post("/event/act", id="dead1", destination="orders", do="retry")
    assert answer.status_code == 303
    assert shop.ask("SELECT who FROM outbox_audit") == [("ada",)]


async def test_a_name_that_the_proxy_writes_in_utf8_is_that_name(visit: Visit, shop: Stock) -> None:
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
async def test_nobody_else_is(visit: Visit, shop: Stock, addresses: list[str], headers: dict[str, str]) -> None:
    visitor = await visit(shop, login=proxy(addresses))
    assert (await visitor.client.get("/", headers=headers)).status_code == 401


async def test_mounted_in_an_application_that_knows_its_people(shop: Stock) -> None:
    async def who(request: Request) -> User | None:
        name = request.headers.get("x-test-user")
        return None if name is None else User(name=name, role=Role.OPERATOR)

    store = SqliteStore(shop.url)
    app = Starlette(routes=[Mount("/outbox", Console(store, login=HostLogin(who)))])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=LOCAL) as client:
        assert (await client.get("/outbox/")).status_code == 401
        client.headers["x-test-user"] = "grace"
        visitor = Visitor(client, store)
        page = await visitor.look("/outbox/events")
        assert 'href="/outbox/event?id=dead1&amp;destination=orders"' in page
        assert 'href="/outbox/static/console.css?v=' in page
        assert (await client.get("/outbox/static/console.css")).status_code == 200
        token = await visitor.token("/outbox/dead")
        form = {"token": token, "id": "dead1", "destination": "orders", "do": "retry"}
        answer = await client.post("/outbox/event/act", data=form)
        assert answer.headers["location"] == "/outbox/event?id=dead1"
    await store.aclose()
    assert shop.ask("SELECT who FROM outbox_audit") == [("grace",)]


async def test_without_a_login_only_names_of_this_machine_are_answered(visit: Visit, shop: Stock) -> None:
    visitor = await visit(shop)
    assert (await visitor.client.get("/", headers={"host": "evil.example:8980"})).status_code == 403
    assert (await visitor.client.get("/", headers={"host": "localhost:8980"})).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [{"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}],
)
async def test_a_form_of_another_site_does_nothing(visit: Visit, shop: Stock, headers: dict[str, str]) -> None:
    visitor = await visit(shop)
    form = {"token": await visitor.token("/dead"), "id": "dead1", "destination": "orders", "do": "retry"}
    assert (await visitor.client.post("/event/act", data=form, headers=headers)).status_code == 403
    assert states(shop, "dead1") == ["FAILED"]


@pytest.mark.parametrize("token", ["", "x", "e30.e30", None])
async def test_a_form_without_a_token_of_ours_does_nothing(visit: Visit, shop: Stock, token: str | None) -> None:
    form = {"id": "dead1", "destination": "orders", "do": "retry"} | ({} if token is None else {"token": token})
    answer = await (await visit(shop)).client.post("/event/act", data=form)
    assert answer.status_code == 403
    assert states(shop, "dead1") == ["FAILED"]


async def test_a_token_of_somebody_else_does_nothing(visit: Visit, shop: Stock, login: UserLogin) -> None:
    visitor = await visit(shop, login=login)
    await enter(visitor, "ada")
    token = await visitor.token("/dead")
    await enter(visitor, "olga")
    form = {"token": token, "id": "dead1", "destination": "orders", "do": "retry"}
    assert (await visitor.client.post("/event/act", data=form)).status_code == 403


async def test_looking_never_writes(visit: Visit, shop: Stock) -> None:
    answer = await (await visit(shop)).client.get("/event/act?id=dead1&destination=orders&do=retry")
    assert answer.status_code == 404
    assert states(shop, "dead1") == ["FAILED"]


async def test_every_answer_carries_the_headers_that_browsers_obey(visit: Visit, shop: Stock) -> None:
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


async def test_read_only_has_no_way_to_write(visit: Visit, shop: Stock) -> None:
    visitor = await visit(shop, read_only=True)
    for path in ("/", "/event?id=dead1", "/dead", "/destinations", "/keys", "/relays"):
        assert 'method="post"' not in await visitor.look(path)
    assert "/dead/edit" not in await visitor.look("/event?id=dead1")
    assert (await visitor.client.get("/dead/edit?dead_letter_id=1")).status_code == 404
    paths = ("/event/act", "/dead/decide", "/dead/edit", "/everything", "/api/v1/dead/retry", "/api/v1/dead/edit")
    for path in (*paths, "/destinations/override"):
        assert (await visitor.client.post(path, data={})).status_code == 404
    described = (await visitor.client.get("/api/v1/openapi.json")).json()
    assert [method for operations in described["paths"].values() for method in operations if method != "get"] == []


def test_a_login_that_lets_nobody_in_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="there is no users file"):
        UsersFile(tmp_path / "users")
    (tmp_path / "users").write_text("# nobody\n")
    with pytest.raises(ConfigurationError, match="there are no users"):
        UserLogin(UsersFile(tmp_path / "users"))
    with pytest.raises(ConfigurationError, match="needs the addresses of that proxy"):
        ProxyLogin(addresses=[], user_header="X-User")
    with pytest.raises(ConfigurationError, match="is not the address of a proxy"):
        ProxyLogin(addresses=["everybody"], user_header="X-User")


async def test_nobody_may_ask_for_more_than_a_form_holds(visit: Visit, shop: Stock) -> None:
    visitor = await visit(shop, login=NoLogin("ada"))
    form = {"token": await visitor.token("/dead"), "id": "x" * 3_000_000}
    assert (await visitor.client.post("/event/act", data=form)).status_code == 413
    assert (await visitor.client.post("/event/act", content=b"\0")).status_code == 415
