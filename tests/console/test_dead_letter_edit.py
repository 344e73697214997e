"""Edit and retry a dead letter, without destroying masked content."""

import json
from hashlib import sha256
from typing import Any

import pytest

from pillarbox.core.event import Event
from pillarbox.core.outcome import Dead
from pillarbox.ops.console import Role, User
from pillarbox.ops.console.logins import HostLogin
from tests.console.conftest import Visit, Visitor, states
from tests.integration.cli.conftest import Stock

OLD = b'{"id":1,"price":"free"}'
TYPED = '{\n  "id": 1,\n  "price": 2\n}\n'
NEW = b'{"id":1,"price":2}'
NUMBER = "1"


def spoil(stock: Stock, payload: Any = OLD, kind: str = "application/json") -> Stock:
    headers = {"tenant": "acme", "debug": "1"}
    stock.record(Event("order.placed", payload, event_id="bad", key="k", headers=headers, content_type=kind))
    stock.settle(bad=(Dead(error="price"), "orders"))
    return stock


@pytest.fixture
def spoilt(stock: Stock) -> Stock:
    """A dead letter with a price that is none, on each engine."""
    return spoil(stock)


@pytest.fixture
def one(sqlite_url: str) -> Stock:
    """The same on SQLite alone, for what does not depend on the engine."""
    return spoil(Stock(sqlite_url))


@pytest.fixture
def binary(sqlite_url: str) -> Stock:
    return spoil(Stock(sqlite_url), b"\xff\x00", "application/octet-stream")


@pytest.fixture
def plain(sqlite_url: str) -> Stock:
    return spoil(Stock(sqlite_url), b"free text", "text/plain")


def content(stock: Stock) -> tuple[bytes, dict[str, str]]:
    [(payload, headers)] = stock.ask("SELECT payload, headers FROM outbox_message WHERE event_id = 'bad'")
    return bytes(payload), headers if isinstance(headers, dict) else json.loads(headers)


def untouched(stock: Stock) -> bool:
    return states(stock, "bad") == ["FAILED"] and stock.ask("SELECT what FROM outbox_audit") == []


async def test_a_dead_letter_is_edited_confirmed_and_retried(visit: Visit, spoilt: Stock) -> None:
    visitor = await visit(spoilt)
    assert f'href="/dead/edit?dead_letter_id={NUMBER}"' in await visitor.page_text("/event?id=bad")
    page = await visitor.page_text(f"/dead/edit?dead_letter_id={NUMBER}")
    assert "&#34;price&#34;: &#34;free&#34;" in page
    assert all(f"\n{header}\n" in page for header in ("tenant: acme", "debug: 1"))
    typed = {"dead_letter_id": NUMBER, "payload": TYPED, "headers": "tenant: umbrella\n"}
    confirm = (await visitor.post("/dead/edit", **typed)).text
    changes = ("+   &#34;price&#34;: 2", "-   &#34;price&#34;: &#34;free&#34;", "+ tenant: umbrella", "- debug: 1")
    assert [line for line in changes if f">{line}</span>" not in confirm] == []
    assert untouched(spoilt)
    answer = await visitor.post("/dead/edit", **typed, action="send")
    assert f"Dead letter {NUMBER} retried with edited content." in await visitor.page_text(answer.headers["location"])
    assert states(spoilt, "bad") == ["PENDING"]
    assert content(spoilt) == (NEW, {"tenant": "umbrella", "amended": sha256(OLD).hexdigest()})


async def test_invalid_input_stays_in_the_form(visit: Visit, one: Stock) -> None:
    visitor = await visit(one)
    for fields, said in (
        ({"payload": '{"price": <2>'}, "payload is not JSON"),
        ({"headers": "tenant"}, "headers, line 1: write a name, a colon and a value"),
        ({}, "Nothing was changed."),
    ):
        answer = await visitor.post("/dead/edit", dead_letter_id=NUMBER, action="send", **fields)
        assert (answer.status_code, said in answer.text) == (400, True), answer.text
        for text in fields.values():
            assert text.replace("<", "&lt;").replace(">", "&gt;").replace('"', "&#34;") + "</textarea>" in answer.text
    again = await visitor.post("/dead/edit", dead_letter_id=NUMBER, action="edit", payload="half a thought")
    assert (again.status_code, "half a thought</textarea>" in again.text) == (200, True)
    assert untouched(one)


async def test_an_edited_payload_is_limited_in_size(visit: Visit, one: Stock) -> None:
    answer = await (await visit(one, max_payload=20)).post(
        "/dead/edit", dead_letter_id=NUMBER, payload=f'{TYPED[:-2]},"n":1}}'
    )
    assert (answer.status_code, "max_payload allows 20" in answer.text) == (400, True)


async def test_editing_a_missing_or_pending_dead_letter_is_a_conflict(visit: Visit, one: Stock) -> None:
    visitor = await visit(one)
    one.record(Event("order.placed", {}, event_id="bad", destination="orders"))
    answer = await visitor.post("/dead/edit", dead_letter_id=NUMBER, payload=TYPED, action="send")
    assert (answer.status_code, "already pending" in answer.text) == (409, True)
    await visitor.store.admin.dead_letters.discard([int(NUMBER)])
    answer = await visitor.post("/dead/edit", dead_letter_id=NUMBER, payload=TYPED, action="send")
    assert (answer.status_code, "no longer exists" in answer.text) == (409, True)
    assert (await visitor.client.get(f"/dead/edit?dead_letter_id={NUMBER}")).status_code == 404
    assert (await visitor.client.get("/dead/edit?dead_letter_id=x")).status_code == 400


async def test_a_binary_payload_is_kept_and_its_headers_are_edited(visit: Visit, binary: Stock) -> None:
    visitor = await visit(binary)
    page = await visitor.page_text(f"/dead/edit?dead_letter_id={NUMBER}")
    assert ('name="payload"' in page, "The payload is not text" in page) == (False, True)
    await visitor.post(
        "/dead/edit", dead_letter_id=NUMBER, payload="no bytes", headers="tenant: umbrella\n", action="send"
    )
    assert content(binary) == (b"\xff\x00", {"tenant": "umbrella", "amended": sha256(b"\xff\x00").hexdigest()})


async def refused_everywhere(visitor: Visitor, said: str) -> None:
    """To look, to send a form and to ask the API: the same answer."""
    form = {"token": await visitor.token(), "dead_letter_id": NUMBER, "payload": TYPED}
    answers = [
        await visitor.client.get(f"/dead/edit?dead_letter_id={NUMBER}"),
        await visitor.client.post("/dead/edit", data=form | {"action": "send"}),
        await visitor.client.post("/api/v1/dead/edit", json=form | {"dead_letter_id": int(NUMBER), "payload": {}}),
    ]
    assert [answer.status_code for answer in answers] == [403, 403, 403]
    assert all(said in answer.text for answer in answers)
    assert not any("free" in answer.text for answer in answers)


@pytest.mark.parametrize(
    ("person", "said"),
    [
        (User(name="vera", role=Role.VIEWER, payloads=True), "needs the role operator"),
        (User(name="olga", role=Role.OPERATOR), "Your user lacks the right to see payloads"),
    ],
)
async def test_editing_needs_a_role_and_the_right_to_see_payloads(
    visit: Visit, one: Stock, person: User, said: str
) -> None:
    visitor = await visit(one, login=HostLogin(lambda _: person))
    assert "/dead/edit" not in await visitor.page_text("/event?id=bad")
    await refused_everywhere(visitor, said)
    assert untouched(one)


@pytest.mark.parametrize("rule", ["$.price", "$..id", "header:DEBUG"])
async def test_a_dead_letter_with_masked_parts_cannot_be_edited(visit: Visit, one: Stock, rule: str) -> None:
    await refused_everywhere(await visit(one, mask=[rule]), "Masking rules hide a part of this event")
    assert untouched(one)


async def test_a_dead_letter_that_cannot_be_masked_cannot_be_edited(visit: Visit, plain: Stock) -> None:
    await refused_everywhere(await visit(plain, mask=["$.price"]), "Masking rules hide a part of this event")
    assert "free text" in await (await visit(plain, mask=["header:other"])).page_text(
        f"/dead/edit?dead_letter_id={NUMBER}"
    )


async def test_masking_rules_without_a_match_allow_editing(visit: Visit, one: Stock) -> None:
    visitor = await visit(one, mask=["$.customer.email", "header:authorization"])
    await visitor.post("/dead/edit", dead_letter_id=NUMBER, payload=TYPED, action="send")
    assert content(one)[0] == NEW


async def test_the_api_edits_a_dead_letter_like_the_command(visit: Visit, one: Stock) -> None:
    visitor = await visit(one)
    headers = {"x-csrf-token": await visitor.token()}
    body = {
        "dead_letter_id": int(NUMBER),
        "payload": {"id": 1, "price": 2},
        "headers": {"n": "2"},
        "removed": ["debug"],
    }
    expected = {
        "event_id": "bad",
        "destination": "orders",
        "dead_letter_id": 1,
        "payload": {
            "old": {"sha256": sha256(OLD).hexdigest(), "bytes": len(OLD)},
            "new": {"sha256": sha256(NEW).hexdigest(), "bytes": len(NEW)},
        },
        "headers": {"set": ["n"], "removed": ["debug"]},
        "changed": True,
    }
    dry = await visitor.client.post("/api/v1/dead/edit", json=body | {"dry_run": True}, headers=headers)
    assert dry.json() == expected | {"done": False, "dry_run": True}
    assert untouched(one)
    done = await visitor.client.post("/api/v1/dead/edit", json=body, headers=headers)
    assert done.json() == expected | {"done": True, "dry_run": False}
    assert content(one) == (NEW, {"tenant": "acme", "n": "2", "amended": sha256(OLD).hexdigest()})


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({}, 400, "missing field 'dead_letter_id'"),
        ({"dead_letter_id": 99, "payload": {}}, 409, "no longer exists"),
        ({"dead_letter_id": 1, "payload": 42}, 400, "at the top"),
        ({"dead_letter_id": 1, "payload": {}, "payload_base64": "e30="}, 400, "both given"),
        ({"dead_letter_id": 1, "payload_base64": "ew=="}, 400, "not JSON"),
        ({"dead_letter_id": 1, "headers": ["tenant"]}, 400, "headers is not an object"),
        ({"dead_letter_id": 1, "headers": {"n": 2}}, 400, "headers is not an object of strings"),
        ({"dead_letter_id": 1, "removed": "debug"}, 400, "removed is not a list of strings"),
        ({"dead_letter_id": 1, "removed": ["other"]}, 400, "no header 'other'"),
    ],
)
async def test_an_impossible_api_request_is_rejected(
    visit: Visit, one: Stock, body: dict[str, object], status: int, said: str
) -> None:
    visitor = await visit(one)
    headers = {"x-csrf-token": await visitor.token()}
    answer = await visitor.client.post("/api/v1/dead/edit", json=body, headers=headers)
    assert (answer.status_code, said in answer.json()["error"]) == (status, True), answer.text
    assert untouched(one)
