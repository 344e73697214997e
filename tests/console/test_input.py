"""Invalid input is rejected with a reason."""

import base64
import json
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from starlette.requests import Request

from pillarbox.core.event import Event
from pillarbox.ops.console import Console, HostLogin, User
from pillarbox.stores.sqlite import SqliteStore
from tests.console.conftest import LOCAL, Visit, Visitor, states
from tests.integration.cli.conftest import Stock

BEYOND = ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00")
"""Moments that have no place in UTC."""
ASKING_FOR_TIMES = (
    "/events?since={}",
    "/events?after={},1,orders",
    "/dead?since={}",
    "/dead/decide?action=retry&since={}",
    "/dead/export?since={}",
    "/events/decide?action=retry&since={}",
    "/replay?since={}",
    "/replay?until={}",
    "/audit?since={}",
    "/audit/export?since={}",
    "/api/v1/events?since={}",
    "/api/v1/dead?since={}",
)


async def post_json(visitor: Visitor, path: str, body: dict[str, Any]) -> httpx.Response:
    # `json.dumps` writes half a character out; httpx could not encode it.
    headers = {"x-csrf-token": await visitor.token("/dead"), "content-type": "application/json"}
    return await visitor.client.post(path, content=json.dumps(body), headers=headers)


WRONG_TYPES: list[tuple[str, dict[str, Any], str]] = [
    ("dead/discard", {"key": "k", "dry_run": "true"}, "dry_run is not true or false: 'true'"),
    ("dead/discard", {"key": "k", "dry_run": 1}, "dry_run is not true or false: 1"),
    ("dead/discard", {"key": "k", "dry_run": None}, "dry_run is not true or false: None"),
    ("dead/discard", {"all": "no"}, "all is not true or false: 'no'"),
    ("dead/discard", {"key": "k", "count": "2"}, "count is not a whole number: '2'"),
    ("dead/discard", {"key": "k", "count": True}, "count is not a whole number: True"),
    ("dead/discard", {"error": "refused", "key": 0}, "key is not a string: 0"),
    ("dead/discard", {"error": "refused", "destination": False}, "destination is not a string: False"),
    ("dead/discard", {"error": {}}, "error is not a string: {}"),
    ("dead/discard", {"ids": "dead1"}, "ids is not a list of strings: 'dead1'"),
    ("dead/discard", {"ids": [1]}, "ids is not a list of strings: [1]"),
    ("dead/discard", {"error": "refused", "key": ""}, "key is empty: give a value, or omit the field"),
    ("dead/discard", {"error": "refused", "key": " "}, "key is empty: give a value, or omit the field"),
    ("dead/edit", {"dead_letter_id": 1, "payload": {"n": 1}, "dry_run": "on"}, "dry_run is not true or false: 'on'"),
    ("dead/edit", {"dead_letter_id": 1, "headers": {"n": 1}}, "headers is not an object of strings: {'n': 1}"),
    ("dead/edit", {"dead_letter_id": 1, "removed": [None]}, "removed is not a list of strings: [None]"),
    ("dead/edit", {"payload": {"n": 1}}, "missing field 'dead_letter_id': its id"),
    ("events/act", {"action": "discard", "type": ["order.placed"]}, "type is not a string: ['order.placed']"),
    ("events/act", {"type": "order.placed"}, "missing field 'action': retry, discard, reschedule or dead_letter"),
]


async def test_a_value_of_another_type_is_rejected(visit: Visit, shop: Stock) -> None:
    """As a text it would be another filter, and a flag would be lost."""
    visitor = await visit(shop)
    for path, body, reason in WRONG_TYPES:
        answer = await post_json(visitor, f"/api/v1/{path}", body)
        assert (answer.status_code, answer.json()) == (400, {"error": reason})
    assert states(shop, "dead1", "dead2", "fresh") == ["FAILED", "FAILED", "PENDING"]
    assert shop.ask("SELECT what FROM outbox_audit") == []


async def test_an_empty_field_of_a_query_of_the_api_is_rejected(visit: Visit, shop: Stock) -> None:
    visitor = await visit(shop)
    for path in ("events?key=", "dead?destination=%20", "timeseries?window="):
        answer = await visitor.client.get(f"/api/v1/{path}")
        assert (answer.status_code, "is empty: give a value" in answer.json()["error"]) == (400, True), path
    answer = await visitor.client.get("/api/v1/event")
    assert (answer.status_code, answer.json()) == (400, {"error": "missing field 'id': its id"})


async def test_a_page_reads_its_form_with_empty_fields(visit: Visit, shop: Stock) -> None:
    visitor = await visit(shop)
    assert "dead1" in await visitor.page_text("/dead?view=list&key=&destination=&error=")


async def test_flags_of_pages_are_parsed_from_words(visit: Visit, shop: Stock) -> None:
    visitor = await visit(shop)
    assert (
        await visitor.post("/destinations/override", destination="x", action="pause", force="on")
    ).status_code == 303
    assert "Stop following" in await visitor.page_text("/events?live=1")
    assert "Stop following" not in await visitor.page_text("/events?live=0")


async def test_a_time_that_no_store_can_hold_is_rejected(visit: Visit, stock: Stock) -> None:
    visitor = await visit(stock)
    for path in ASKING_FOR_TIMES:
        for beyond in BEYOND:
            answer = await visitor.client.get(path.format(beyond.replace("+", "%2B")))
            assert answer.status_code == 400, path
        for within in ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"):
            assert (await visitor.client.get(path.format(within))).status_code == 200, path


async def test_text_that_no_store_can_hold_is_rejected(visit: Visit, with_dead_letters: Stock) -> None:
    visitor = await visit(with_dead_letters)
    for text in ("a\0", "a\ud800"):
        bodies: list[tuple[str, dict[str, Any]]] = [
            ("event/act", {"id": text, "destination": "orders", "action": "retry"}),
            ("keys/act", {"id": text, "destination": "", "action": "retry"}),
            ("dead/retry", {"ids": [text]}),
            ("dead/retry", {"key": text}),
            ("replay", {"type": text}),
            ("dead/edit", {"dead_letter_id": 1, "headers": {text: "x"}}),
        ]
        for path, body in bodies:
            answer = await post_json(visitor, f"/api/v1/{path}", body)
            assert (answer.status_code, "which no store can hold" in answer.text) == (400, True), answer.text
    assert with_dead_letters.ask("SELECT event_id FROM outbox_request") == []


async def test_a_query_with_unstorable_text_is_rejected(visit: Visit, stock: Stock) -> None:
    visitor = await visit(stock)
    paths = ("/event?id=%00", "/events?key=%00", "/dead?error=%00", "/audit?who=%00", "/replay?type=%00")
    for path in (*paths, "/api/v1/event?id=%00", "/events?after=2026-11-30T12:00:00Z,1,%2500"):
        assert (await visitor.client.get(path)).status_code == 400, path


async def test_a_payload_may_contain_every_character(visit: Visit, shop: Stock) -> None:
    visitor = await visit(shop)
    answer = await post_json(visitor, "/api/v1/dead/edit", {"dead_letter_id": 1, "payload": {"text": "a\0"}})
    assert (answer.status_code, answer.json()["done"]) == (200, True)
    answer = await post_json(visitor, "/api/v1/dead/edit", {"dead_letter_id": 2, "payload": {"text": "\ud800"}})
    assert (answer.status_code, answer.json()["error"][:12]) == (400, "payload.text")


@pytest.mark.parametrize("headers", [{"host": "["}, {"host": "a/b"}, {"origin": "http://["}])
async def test_an_invalid_address_is_rejected(visit: Visit, shop: Stock, headers: dict[str, str]) -> None:
    visitor = await visit(shop, login=HostLogin(lambda request: User(name="ada")))
    answer = await visitor.client.get("/", headers=headers)
    assert (answer.status_code, "content-security-policy" in answer.headers) == (400, True)


async def test_an_unhandled_exception_has_the_security_headers(shop: Stock) -> None:
    def broken(request: Request) -> User:
        raise RuntimeError("a bug")

    store = SqliteStore(shop.url)
    transport = httpx.ASGITransport(Console(store, login=HostLogin(broken)), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=LOCAL) as client:
        answer = await client.get("/")
    await store.aclose()
    assert answer.status_code == 500
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    assert (answer.headers["x-content-type-options"], answer.headers["cache-control"]) == ("nosniff", "no-store")


async def test_a_lone_surrogate_in_a_payload_is_shown(visit: Visit, shop: Stock) -> None:
    payload = b'{"card":"4242","text":"\\ud800"}'
    shop.record(Event("order.placed", payload, event_id="half", content_type="application/json"))
    plain, masked = await visit(shop), await visit(shop, mask=["$.card"])
    for path in ("/event?id=half", "/event?id=half&as=raw", "/event/payload?id=half", "/api/v1/event?id=half"):
        await plain.page_text(path)
        assert "4242" not in await masked.page_text(path)
    shown = {"card": "•••", "text": "\ud800"}
    assert json.loads(await masked.page_text("/event/payload?id=half")) == shown
    [reported] = (await masked.client.get("/api/v1/event?id=half")).json()["events"]
    assert json.loads(base64.b64decode(reported["payload_base64"])) == shown


async def test_no_redirect_uses_the_host_of_the_request(visit: Visit, shop: Stock) -> None:
    visitor = await visit(shop, login=HostLogin(lambda request: None))
    answer = await visitor.client.get("/events/", headers={"host": "evil.example"})
    assert (answer.status_code, "location" in answer.headers) == (404, False)


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/dead/decide", {"action": "discard", "destination": "orders", "eror": "x"}),
        ("/events/decide", {"action": "discard", "type": "order.placed", "destinaton": "x"}),
        ("/replay", {"type": "order.placed", "dest": "x"}),
    ],
)
async def test_an_unknown_field_is_rejected_before_an_action(
    visit: Visit, shop: Stock, path: str, fields: dict[str, str]
) -> None:
    visitor = await visit(shop)
    for answer in (
        await visitor.client.get(f"{path}?{urlencode(fields)}"),
        await visitor.post(path, **fields, count=1),
    ):
        assert (answer.status_code, "unknown field" in answer.text) == (400, True)


async def test_the_api_lists_the_known_fields(visit: Visit, shop: Stock) -> None:
    visitor = await visit(shop)
    body = {"destination": "orders", "eror": "x"}
    reported = (await post_json(visitor, "/api/v1/dead/discard", body)).json()["error"]
    assert reported.startswith("unknown field 'eror': the fields are ids, id, type, key, destination")
    reported = (await visitor.client.get("/api/v1/event?id=dead1&full=1")).json()["error"]
    assert reported == "unknown field 'full': the fields are id"
    answer = await post_json(visitor, "/api/v1/dead/discard?error=x", {"destination": "orders"})
    assert "a POST has no query parameters" in answer.json()["error"]
    assert states(shop, "dead1") == ["FAILED"]
