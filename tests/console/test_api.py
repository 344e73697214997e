"""The API shows and does what the pages and the commands show and do."""

import base64
import json
import re
from datetime import UTC, datetime

import pytest

from pillarbox import Inbox
from pillarbox.core.event import Event
from pillarbox.core.outcome import Dead
from pillarbox.core.statistics import ConsumerStatistics, OutcomeStatistics
from pillarbox.ops.settings import Settings
from pillarbox.testing.conformance.lane_owner import Owner
from tests.console.conftest import Visit, states
from tests.integration.cli.conftest import Stock
from tests.integration.cli.running import pillarbox


async def test_the_api_lists_events_like_the_command(visit: Visit, with_dead_letters: Stock) -> None:
    done = pillarbox("events", "list", "--status", "FAILED", "--json", PILLARBOX_STORE=with_dead_letters.url)
    reported = (await (await visit(with_dead_letters)).client.get("/api/v1/events?status=FAILED")).json()
    assert reported == json.loads(done.stdout)


async def test_the_api_shows_an_event_like_the_command(visit: Visit, with_dead_letters: Stock) -> None:
    done = pillarbox("events", "show", "dead1", "--json", PILLARBOX_STORE=with_dead_letters.url)
    reported = (await (await visit(with_dead_letters)).client.get("/api/v1/event?id=dead1")).json()
    assert reported == json.loads(done.stdout)


async def test_the_api_shows_the_status_like_the_command(visit: Visit, with_dead_letters: Stock) -> None:
    done = json.loads(pillarbox("status", "--json", PILLARBOX_STORE=with_dead_letters.url).stdout)
    reported = (await (await visit(with_dead_letters)).client.get("/api/v1/status")).json()
    common = ("state", "reason", "backlog", "exact", "dead_letters", "lanes")
    assert {name: reported[name] for name in common} == {name: done[name] for name in common}


async def test_the_api_shows_the_inbox_like_the_command(visit: Visit, stock: Stock) -> None:
    with stock.transaction() as transaction:
        Inbox().admit(transaction, "by hand", "e1")
        Inbox().add_statistics(transaction, ConsumerStatistics("billing", 3, 1, 2, 1, "no address", 60.0))
    done = pillarbox("inbox", "list", "--json", PILLARBOX_STORE=stock.url)
    reported = (await (await visit(stock, settings=Settings.load(None, {}, {}))).client.get("/api/v1/inbox")).json()
    assert reported == json.loads(done.stdout)
    billing, by_hand = reported["consumers"]
    failed_at = datetime.fromisoformat(billing.pop("last_failed_at"))
    assert 60 <= (datetime.now(UTC) - failed_at).total_seconds() < 600
    assert billing == {
        "name": "billing",
        "records": 0,
        "processed": 3,
        "duplicates": 1,
        "failures": 2,
        "dead_lettered": 1,
        "last_error": "no address",
        "expired_records": 0,
    }
    assert (by_hand["records"], by_hand["processed"], by_hand["last_failed_at"]) == (1, None, None)
    assert (reported["retention_seconds"], reported["expired_records"]) == (120 * 86_400, 0)


@pytest.mark.parametrize(
    "path",
    [
        "statistics",
        "status",
        "timeseries",
        "events",
        "dead",
        "dead/groups",
        "destinations",
        "keys",
        "relays",
        "inbox",
        "audit",
    ],
)
async def test_every_query_of_the_api_responds_on_every_engine(
    visit: Visit, with_dead_letters: Stock, path: str
) -> None:
    answer = await (await visit(with_dead_letters)).client.get(f"/api/v1/{path}")
    assert answer.status_code == 200, answer.text
    assert isinstance(answer.json(), dict)


async def test_the_openapi_document_describes_every_route(visit: Visit, shop: Stock) -> None:
    visitor = await visit(shop)
    described = (await visitor.client.get("/api/v1/openapi.json")).json()
    assert described["openapi"].startswith("3.1")
    for path, operations in described["paths"].items():
        for method in operations:
            answer = await visitor.client.request(method, path, json={} if method == "post" else None)
            assert answer.status_code not in (404, 405) or "error" in answer.json(), path
            assert answer.headers["content-type"] == "application/json"


async def test_dead_letters_are_counted_and_then_retried(visit: Visit, with_dead_letters: Stock) -> None:
    visitor = await visit(with_dead_letters)
    headers = {"x-csrf-token": await visitor.token()}
    asked = {"key": "k", "dry_run": True}
    dry = await visitor.client.post("/api/v1/dead/retry", json=asked, headers=headers)
    told = dry.json()
    assert (told["matched"], told["done"], told["requested"], told["dry_run"]) == (2, 0, 0, True)
    changed = await visitor.client.post("/api/v1/dead/retry", json={"key": "k", "count": 1}, headers=headers)
    assert changed.status_code == 409
    done = await visitor.client.post("/api/v1/dead/retry", json={"key": "k", "count": 2}, headers=headers)
    assert done.json() == told | {"done": 2, "dry_run": False}
    assert states(with_dead_letters, "dead1", "dead2") == ["PENDING", "PENDING"]


async def test_an_unknown_destination_is_overridden_with_force(visit: Visit, shop: Stock) -> None:
    visitor = await visit(shop)
    headers = {"x-csrf-token": await visitor.token()}
    body: dict[str, object] = {"destination": "partner", "action": "pause"}
    refused = await visitor.client.post("/api/v1/destinations/override", json=body, headers=headers)
    done = await visitor.client.post("/api/v1/destinations/override", json=body | {"force": True}, headers=headers)
    assert (refused.status_code, done.status_code) == (404, 200)
    assert shop.ask("SELECT destination FROM outbox_destination") == [("partner",)]


async def test_delivered_events_are_replayed(visit: Visit, with_dead_letters: Stock) -> None:
    visitor = await visit(with_dead_letters)
    headers = {"x-csrf-token": await visitor.token()}
    answer = await visitor.client.post("/api/v1/replay", json={"id": "sent"}, headers=headers)
    number = answer.json()["replay"]
    copies = with_dead_letters.ask("SELECT count(*) FROM outbox_message WHERE event_id NOT IN ('fresh', 'stuck')")
    assert copies == [(1,)]
    [entry] = (await visitor.client.get("/api/v1/audit?what=replay")).json()["audit"]
    assert (entry["number"], entry["who"], entry["count"]) == (number, "ada", 1)


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("dead/retry", {}, "no dead letters selected: give ids, a filter or all"),
        ("dead/retry", {"ids": "dead1"}, "ids is not a list of strings"),
        ("dead/retry", {"group": "x"}, "is not a group of dead letters"),
        ("everything", {"action": "explode"}, "action must be pause or resume"),
        (
            "destinations/override",
            {"destination": "ordres", "action": "pause"},
            "did you mean 'orders'? there are mail, orders",
        ),
        ("destinations/override", {"destination": "*", "action": "open"}, "'*' is not the name of a destination"),
        ("relays/drain", {"relay": "*"}, "'*' is not the name of a relay"),
        ("replay", {}, "The filter is empty"),
        ("replay", {"id": "unknown"}, "The history has no matching deliveries"),
        ("replay", {"type": "x", "rate": "fast"}, "is not a rate above zero"),
    ],
)
async def test_an_impossible_action_is_rejected(
    visit: Visit, shop: Stock, path: str, body: dict[str, object], said: str
) -> None:
    visitor = await visit(shop)
    headers = {"x-csrf-token": await visitor.token()}
    answer = await visitor.client.post(f"/api/v1/{path}", json=body, headers=headers)
    assert answer.status_code in (400, 404)
    assert said in answer.json()["error"]


@pytest.mark.parametrize("body", [b"{", b"[]", b"1", b"\xff", b"[" * 100_000])
async def test_a_malformed_body_is_rejected(visit: Visit, shop: Stock, body: bytes) -> None:
    answer = await (await visit(shop)).client.post(
        "/api/v1/dead/retry", content=body, headers={"content-type": "application/json"}
    )
    assert (answer.status_code, answer.json()) == (400, {"error": "The body cannot be decoded."})


async def test_a_number_beyond_float_precision_is_exported_as_bytes(visit: Visit, stock: Stock) -> None:
    stock.record(Event("order.placed", b'{"n":1e400}', event_id="huge", content_type="application/json"))
    visitor = await visit(stock)
    [reported] = (await visitor.client.get("/api/v1/event?id=huge")).json()["events"]
    assert ("payload" in reported, base64.b64decode(reported["payload_base64"])) == (False, b'{"n":1e400}')
    assert "1e400" in await visitor.page_text("/event?id=huge")


async def test_masks_apply_to_pages_api_and_exports(visit: Visit, stock: Stock) -> None:
    payload = {"customer": {"email": "ada@example.com"}, "total": 12345678901234567890}
    stock.record(
        Event("order.placed", payload, event_id="e", headers={"authorization": "Bearer x"}),
        Event("order.placed", b"ada@example.com", event_id="bytes", content_type="text/plain"),
    )
    visitor = await visit(stock, mask=["$.customer.email", "header:Authorization"])
    for path in (
        "/event?id={}",
        "/event?id={}&as=raw",
        "/event?id={}&as=hex",
        "/api/v1/event?id={}",
        "/event/payload?id={}",
    ):
        for event_id in ("e", "bytes"):
            shown = (await visitor.client.get(path.format(event_id))).text
            assert "ada@" not in shown
            assert "61 64 61 40" not in shown
            assert "Bearer" not in shown
    assert "12345678901234567890" in await visitor.page_text("/event?id=e")


async def test_masked_parts_of_errors_appear_nowhere(visit: Visit, stock: Stock) -> None:
    said = "no such customer: jane.doe@example.com"
    stock.record(*(Event("order.placed", {"to": "jane.doe@example.com"}, event_id=name, key=name) for name in "ab"))
    visitor = await visit(stock, mask=["text:[^ ]+@[^ ]+"])
    owner = await Owner.of(visitor.store)
    for message in await owner.ready():
        await owner.settle(Dead(error=said, block=message.event_id == "b"), message, to="mail")
    await visitor.store.destinations.report("mail", error=said, next_attempt=60)
    await visitor.store.admin.requests.override("mail", breaker="closed")
    paths = ["/", "/events", "/event?id=a", "/dead", "/dead?view=list", "/dead/export", "/destinations", "/keys"]
    api = ["status", "statistics", "events", "event?id=a", "dead", "dead/groups", "destinations", "keys"]
    for path in [*paths, *(f"/api/v1/{name}" for name in api)]:
        shown = await visitor.page_text(path)
        assert "jane.doe" not in shown, path
        assert "no such customer" in shown, path


async def test_time_series_come_from_the_samples_of_relays(visit: Visit, stock: Stock) -> None:
    visitor = await visit(stock)
    carried = OutcomeStatistics()
    carried.count_delivered(0.02)
    await visitor.store.statistics.add("relay-1", {"orders": carried})
    course = (await visitor.client.get("/api/v1/timeseries?window=15m")).json()
    assert sum(value or 0 for value in course["published"]) == pytest.approx(0.1)
    assert [value for value in course["p99"] if value is not None] == [0.02485]
    assert abs(course["times"][-1] - datetime.now(UTC).timestamp()) < 60
    answer = await visitor.client.get("/api/v1/timeseries?window=1y")
    assert "unknown window '1y'" in answer.json()["error"]


async def test_metrics_of_the_store_are_served_for_prometheus(visit: Visit, with_dead_letters: Stock) -> None:
    visitor = await visit(with_dead_letters)
    shown = await visitor.page_text("/metrics")
    assert re.search(r'^outbox_backlog\{outbox="\w+"\} 2\.0$', shown, re.MULTILINE)
    assert re.search(r'^outbox_dead_letters\{outbox="\w+"\} 2\.0$', shown, re.MULTILINE)


@pytest.fixture
def seven_reasons(shop: Stock) -> Stock:
    names = "abcde"
    shop.record(*(Event("order.placed", {}, event_id=name) for name in names))
    shop.settle(**{name: (Dead(error=name * 3), "orders") for name in names})
    return shop


async def test_groups_are_paginated(visit: Visit, seven_reasons: Stock) -> None:
    client = (await visit(seven_reasons)).client
    whole = (await client.get("/api/v1/dead/groups")).json()
    assert (len(whole["groups"]), whole["after"]) == (7, None)
    pages = [(await client.get(f"/api/v1/dead/groups?limit=3{after}")).json() for after in ("", "&after=3", "&after=6")]
    assert [page["after"] for page in pages] == [3, 6, None]
    assert [group for page in pages for group in page["groups"]] == whole["groups"]
    assert (await client.get("/api/v1/dead/groups?limit=501")).status_code == 400
