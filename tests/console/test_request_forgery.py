"""A page of another site in the browser of an operator changes nothing and reads nothing."""

from __future__ import annotations

import json
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from starlette.routing import BaseRoute, Route

from pillarbox.ops.console import Role, User, UserLogin, app
from pillarbox.ops.console.passwords import hashed
from pillarbox.ops.console.users import UserEntry, write
from tests.console.conftest import LOCAL, Visit, Visitor
from tests.console.serving import serving
from tests.integration.cli.conftest import Stock

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PASSWORD = "correct horse battery"
ADA = UserEntry(user=User(name="ada", role=Role.ADMIN, payloads=True), hash=hashed(PASSWORD))
BASIC = {"authorization": "Basic " + b64encode(f"ada:{PASSWORD}".encode()).decode()}
LOGIN = UserLogin(lambda: {"ada": ADA})

FIELDS = {
    "/event/act": {"id": "dead1", "destination": "orders", "action": "discard"},
    "/dead/decide": {"action": "discard", "id": "dead1", "count": "1"},
    "/dead/edit": {"dead_letter_id": "1", "payload": '{"forged": 1}', "action": "send"},
    "/events/decide": {"action": "discard", "type": "order.placed", "count": "2"},
    "/replay": {"id": "sent"},
    "/everything": {"action": "pause"},
    "/destinations/override": {"destination": "orders", "action": "pause", "force": "true"},
    "/keys/act": {"id": "stuck", "destination": "orders", "action": "skip"},
    "/keys/decide": {"action": "skip", "count": "1"},
    "/relays/drain": {"relay": "any"},
    "/login": {"name": "ada", "password": PASSWORD},
    "/api/v1/dead/discard": {"all": "true"},
    "/api/v1/dead/retry": {"all": "true"},
    "/api/v1/events/act": {"action": "discard", "type": "order.placed"},
}
"""What would change something where a route is known by its path; others get everything at once."""
EVERYTHING = {"action": "pause", "all": "true", "id": "dead1", "destination": "orders", "type": "order.placed"}


def writing() -> list[str]:
    """Every route of the console that is not read only, by enumeration: a new one is among them."""
    found: list[BaseRoute] = [*app._page_routes(), *app._action_routes(), *app._login_routes(LOGIN)]
    return sorted(route.path for route in found if isinstance(route, Route) and route.methods != {"GET", "HEAD"})


def fields_of(path: str) -> dict[str, str]:
    return FIELDS.get(path) or FIELDS.get(path.removeprefix("/api/v1")) or EVERYTHING


def witnessed(stock: Stock) -> list[Any]:
    """Whatever an action could have changed."""
    tables = ("outbox_message", "outbox_dead_letter", "outbox_request", "outbox_audit", "outbox_destination")
    return [sorted(map(repr, stock.ask(f"SELECT * FROM {table}"))) for table in tables]


def forms(fields: dict[str, str]) -> Iterator[dict[str, Any]]:
    """What a form or a `no-cors` request of another page can send, and no body at all."""
    yield {"data": fields}
    yield {"files": {name: (None, value) for name, value in fields.items()}}
    text = json.dumps(fields)
    yield {"content": text, "headers": {"content-type": "text/plain"}}
    yield {"content": text, "headers": {"content-type": "text/plain; application/json"}}
    yield {"content": text}
    yield {}


FOREIGN = (
    {"origin": "null"},
    {"origin": "https://evil.example"},
    {"origin": "http://127.0.0.1:9999"},
    {"origin": f"{LOCAL}.evil.example"},
    {"origin": ""},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site", "sec-fetch-mode": "navigate"},
)


def test_every_action_is_covered() -> None:
    assert set(FIELDS) <= set(writing())
    assert len(writing()) >= 20


@pytest.mark.parametrize("path", writing())
async def test_a_cached_password_does_not_authorize_a_form(visit: Visit, shop: Stock, path: str) -> None:
    visitor = await visit(shop, login=LOGIN)
    before = witnessed(shop)
    if path == "/login":
        return await no_foreign_login(visitor)
    for sent in forms(fields_of(path)):
        answer = await visitor.client.post(path, auth=("ada", PASSWORD), **sent)
        assert answer.status_code in (403, 415), (sent, answer.text)
    assert witnessed(shop) == before
    return None


@pytest.mark.parametrize("path", writing())
async def test_no_page_of_another_site_writes_with_any_credentials(visit: Visit, shop: Stock, path: str) -> None:
    """Not even with a token, a session, a password and JSON."""
    visitor = await visit(shop, login=LOGIN)
    if path == "/login":
        return await no_foreign_login(visitor)
    await visitor.client.post("/login", data={"name": "ada", "password": PASSWORD})
    token = await visitor.token("/dead")
    before = witnessed(shop)
    fields = fields_of(path)
    body: dict[str, Any] = {"json": fields} if path.startswith("/api/") else {"data": fields | {"token": token}}
    for foreign in FOREIGN:
        for known in ({}, BASIC):
            headers = foreign | known | {"x-csrf-token": token}
            answer = await visitor.client.post(path, headers=headers, **body)
            assert answer.status_code == 403, (foreign, answer.text)
    assert witnessed(shop) == before
    return None


async def no_foreign_login(visitor: Visitor) -> None:
    for foreign in FOREIGN:
        answer = await visitor.client.post("/login", data=FIELDS["/login"], headers=foreign)
        assert (answer.status_code, "set-cookie" in answer.headers) == (403, False), foreign


@pytest.mark.parametrize("path", [path for path in writing() if path.startswith("/api/")])
async def test_the_api_accepts_json_only(visit: Visit, shop: Stock, path: str) -> None:
    visitor = await visit(shop)
    token, before = await visitor.token("/dead"), witnessed(shop)
    for sent in forms(fields_of(path) | {"token": token}):
        headers = {"x-csrf-token": token, **sent.pop("headers", {})}
        assert (await visitor.client.post(path, headers=headers, **sent)).status_code == 415
    assert witnessed(shop) == before


@pytest.mark.parametrize("path", writing())
async def test_other_methods_are_rejected(visit: Visit, shop: Stock, path: str) -> None:
    visitor = await visit(shop)
    token, before = await visitor.token("/dead"), witnessed(shop)
    for method in ("GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"):
        asked = httpx.QueryParams(fields_of(path) | {"token": token})
        await visitor.client.request(method, f"{path}?{asked}", headers={"x-csrf-token": token})
    assert witnessed(shop) == before


async def test_a_script_with_a_password_needs_no_token(visit: Visit, shop: Stock) -> None:
    visitor = await visit(shop, login=LOGIN)
    done = await visitor.client.post("/api/v1/everything", json={"action": "pause"}, auth=("ada", PASSWORD))
    assert done.status_code == 200, done.text
    assert shop.ask("SELECT who FROM outbox_audit") == [("ada",)]


async def test_a_proxy_that_changes_the_host_is_listed_in_origins(visit: Visit, shop: Stock) -> None:
    visitor = await visit(shop, origins=["https://ops.example.com"])
    form = {"token": await visitor.token("/dead"), "action": "pause"}
    for origin, status in {
        "https://ops.example.com": 303,
        "http://ops.example.com": 403,
        "https://ops.example.com.evil.example": 403,
    }.items():
        answer = await visitor.client.post("/everything", data=form, headers={"origin": origin})
        assert (origin, answer.status_code) == (origin, status)


async def test_partial_requests_of_other_sites_are_rejected(visit: Visit, shop: Stock) -> None:
    visitor = await visit(shop)
    for site in ("cross-site", "same-site"):
        for path in ("/", "/live", "/api/v1/status", "/static/console.js", "/event/payload?id=dead1"):
            headers = {"sec-fetch-site": site, "sec-fetch-mode": "no-cors"}
            assert (await visitor.client.get(path, headers=headers)).status_code == 403
        linked = {"sec-fetch-site": site, "sec-fetch-mode": "navigate"}
        assert (await visitor.client.get("/", headers=linked)).status_code == 200


ATTACK = """
const base = "%(base)s", paths = %(paths)s, fields = %(fields)s, read = [];
const bodyOf = (path) => fields[path] || %(everything)s;
const formOf = (path, enctype) => `<form method=POST enctype="${enctype}" action="${base + path}">` +
  Object.entries(bodyOf(path)).map(([name, value]) => `<input name="${name}" value='${value}'>`).join("") +
  "</form><script>document.forms[0].submit()</" + "script>";
const frame = (attributes) => new Promise((done) => {
  const element = document.createElement("iframe");
  element.onload = done;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  document.body.append(element);
});
const post = (path, way) => fetch(base + path, {method: "POST", credentials: "include", ...way})
  .then((answer) => answer.text(), () => "");
const forge = async (path) => {
  for (const enctype of ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain"]) {
    frame({srcdoc: formOf(path, enctype)});
    frame({srcdoc: formOf(path, enctype), sandbox: "allow-scripts allow-forms"});
  }
  const body = JSON.stringify(bodyOf(path));
  const answers = [
    await post(path, {mode: "no-cors", body, headers: {"content-type": "text/plain"}}),
    await post(path, {mode: "no-cors", body: new URLSearchParams(bodyOf(path))}),
    await post(path, {mode: "no-cors", body: new Blob([body], {type: "application/json"})}),
    await post(path, {mode: "cors", body, headers: {"content-type": "application/json"}}),
    await post(path, {mode: "cors", body, headers: {"content-type": "text/plain", "x-requested-with": "x"}}),
  ];
  navigator.sendBeacon(base + path, new Blob([body], {type: "application/json"}));
  navigator.sendBeacon(base + path, new URLSearchParams(bodyOf(path)));
  read.push(...answers);
};
const attack = async () => {
  await Promise.all(paths.map(forge));
  for (const path of ["/api/v1/status", "/dead", "/api/v1/event?id=dead1"]) {
    for (const mode of ["cors", "no-cors"])
      read.push(await fetch(base + path, {mode, credentials: "include"}).then((answer) => answer.text(), () => ""));
  }
  await frame({name: "framed", src: base + "/dead"});
  for (const [kind, address] of [[EventSource, base], [WebSocket, base.replace("http", "ws")]])
    await new Promise((done) => {
      const connection = new kind(address + "/live", kind === EventSource ? {withCredentials: true} : []);
      connection.onopen = () => { read.push(kind.name); done(); };
      connection.onerror = () => { connection.close(); done(); };
    });
  return read;
};
"""


@contextmanager
def foreign_page(script: str) -> Iterator[int]:
    """The port of another site, with a page of one script."""
    page = f"<!doctype html><body><script>{script}</script>".encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.send_header("content-length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, format: str, *args: Any) -> None:
            """Discard the output."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()


IN_A_BROWSER = ("/everything", "/dead/decide", "/logout", "/api/v1/everything", "/api/v1/dead/discard")
"""Of each kind; requests to all others are tried above."""


@pytest.mark.parametrize(
    ("ours", "theirs", "way"),
    [
        ("console.test", "evil.test", "session"),  # plain http beyond loopback: browsers send no Sec-Fetch-Site
        ("console.test", "evil.test", "cached password"),
        ("127.0.0.1", "127.0.0.1", "session"),  # another port of one host is the same site: cookies are sent
    ],
)
def test_a_page_of_another_site_in_the_browser_of_an_operator_changes_nothing(
    shop: Stock, tmp_path: Path, browser: Browser, ours: str, theirs: str, way: str
) -> None:
    write(tmp_path / "pillarbox.users", {"ada": ADA})
    with serving(shop.url, tmp_path) as address:
        base, before = address.replace("127.0.0.1", ours), witnessed(shop)
        password = {"username": "ada", "password": PASSWORD} if way == "cached password" else None
        page = browser.new_context(http_credentials=password).new_page()  # type: ignore[arg-type]
        page.set_default_timeout(60_000)
        enter(page, base, way)
        reported = {"base": base, "paths": IN_A_BROWSER, "fields": FIELDS, "everything": EVERYTHING}
        script = ATTACK % {name: value if name == "base" else json.dumps(value) for name, value in reported.items()}
        with foreign_page(script) as port:
            page.goto(f"http://{theirs}:{port}/")
            assert [text for text in page.evaluate("attack()") if text] == []
            page.wait_for_load_state("networkidle")
            assert [frame.url for frame in page.frames if frame.url.startswith(base)] == []  # none is framed
        assert witnessed(shop) == before
        answer = page.goto(f"{base}/api/v1/dead")
        assert (answer and answer.status) == 200  # the session still exists


def enter(page: Page, base: str, way: str) -> None:
    """Until a request of this browser is one of the operator's."""
    if way == "session":
        page.goto(f"{base}/login")
        page.get_by_label("Name").fill("ada")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url(f"{base}/")
    else:
        answer = page.goto(f"{base}/api/v1/status")
        assert answer is not None
        assert answer.status == 200
