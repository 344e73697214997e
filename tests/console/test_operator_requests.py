"""Operator requests for pending events are the same from the command line and from the console."""

import json

import pytest

from pillarbox.core.event import Event
from pillarbox.core.outcome import DELIVERED
from pillarbox.ops.console import bulk_counts
from pillarbox.ops.operator_requests import BATCH
from pillarbox.testing.conformance.lane_owner import Owner
from tests.console.conftest import Visit
from tests.integration.cli.conftest import Stock
from tests.integration.cli.running import fresh_pillarbox, pillarbox

MANY = BATCH + 500
REQUESTS = "SELECT action, event_id, destination, delay FROM outbox_request ORDER BY request_id"


@pytest.mark.parametrize(
    ("arguments", "path", "fields"),
    [
        (("retry", "fresh"), "/event/act", {"id": "fresh", "destination": "", "action": "retry"}),
        (("discard", "stuck", "-y"), "/event/act", {"id": "stuck", "destination": "orders", "action": "discard"}),
        (
            ("reschedule", "--in", "10m", "--type", "order.placed", "-y"),
            "/events/decide",
            {"action": "reschedule", "delay": "10m", "type": "order.placed"},
        ),
    ],
)
async def test_a_command_and_a_button_add_the_same_request(
    visit: Visit, with_dead_letters: Stock, arguments: tuple[str, ...], path: str, fields: dict[str, str]
) -> None:
    done = pillarbox("events", *arguments, PILLARBOX_STORE=with_dead_letters.url)
    assert done.returncode == 0, done.stderr
    visitor = await visit(with_dead_letters)
    if path == "/events/decide":
        asked = {name: value for name, value in fields.items() if name != "delay"}
        await visitor.confirm(path, entered={"delay": fields["delay"]}, **asked)
    else:
        await visitor.post(path, **fields)
    by_command, by_button = with_dead_letters.ask(REQUESTS)
    assert by_command == by_button


@pytest.fixture
def crowd(stock: Stock) -> Stock:
    """More events that wait than are asked for in one statement, some of another type, and one that was delivered."""
    stock.record(Event("order.placed", {}, event_id="sent"))
    stock.settle(sent=(DELIVERED, "orders"))
    stock.record(*(Event("order.placed", {}, event_id=f"e{n}") for n in range(MANY)), Event("order.odd", {}))
    return stock


async def test_all_matching_pending_events_are_requested(visit: Visit, crowd: Stock) -> None:
    visitor = await visit(crowd)
    assert f"Send now {MANY:,}" in await visitor.page_text("/events/decide?action=retry&type=order.placed")
    few = {"count": str(MANY - 1)}
    answer = await visitor.confirm("/events/decide", entered=few, action="retry", type="order.placed")
    assert (answer.status_code, crowd.ask(REQUESTS)) == (409, [])
    answer = await visitor.confirm("/events/decide", action="retry", type="order.placed")
    assert f"{MANY:,} events: requested from the relays" in await visitor.page_text(answer.headers["location"])
    assert crowd.ask(REQUESTS) == [("retry", f"e{n}", "", 0.0) for n in range(MANY)]
    [(what, subject, count, detail)] = crowd.ask("SELECT what, subject, count, detail FROM outbox_audit")
    assert (what, subject, count) == ("retry", "type order.placed", 0)
    assert (json.loads(detail) if isinstance(detail, str) else detail) == {"remaining": MANY}


async def test_an_event_shows_open_requests_and_the_missing_relay(visit: Visit, with_dead_letters: Stock) -> None:
    visitor = await visit(with_dead_letters)
    answer = await visitor.post("/event/act", id="fresh", destination="", action="reschedule", delay="10m")
    page = await visitor.page_text(answer.headers["location"])
    assert "No relay is running: the request stays open" in page
    assert "requested reschedule" in page
    owner = await Owner.of(visitor.store)
    answer = await visitor.post("/event/act", id="stuck", destination="orders", action="retry")
    assert "No relay is running: the request stays open" not in await visitor.page_text(answer.headers["location"])
    await owner.execute_requests()
    assert "requested reschedule" not in await visitor.page_text("/event?id=fresh")


async def test_the_api_requests_all_matching_pending_events(visit: Visit, crowd: Stock) -> None:
    visitor = await visit(crowd)
    headers = {"x-csrf-token": await visitor.token()}
    asked: dict[str, object] = {"action": "reschedule", "delay": "10m", "type": "order.placed"}
    answers = [
        (await visitor.client.post("/api/v1/events/act", json=asked | more, headers=headers)).json()
        for more in ({"dry_run": True}, {"count": 1}, {"count": MANY})
    ]
    assert (answers[0]["matched"], answers[0]["requested"], answers[0]["dry_run"]) == (MANY, 0, True)
    assert f"The number changed to {MANY:,}." in answers[1]["error"]
    assert (answers[2]["matched"], answers[2]["requested"], answers[2]["dry_run"]) == (MANY, MANY, False)
    done = fresh_pillarbox(
        "events", "reschedule", "--in", "10m", "--type", "order.placed", "-y", "--json", PILLARBOX_STORE=crowd.url
    )
    assert answers[2] == {"selection": answers[0]["selection"], **json.loads(done.stdout)}
    by_script, by_command = crowd.ask(REQUESTS)[:MANY], crowd.ask(REQUESTS)[MANY:]
    assert by_script == by_command


async def test_a_count_that_takes_too_long_is_rejected(
    visit: Visit, shop: Stock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_counts, "COUNT_TIMEOUT", 0.0)
    visitor = await visit(shop)
    for path in ("/events/decide?action=retry&type=order.placed", "/dead/decide?action=retry"):
        answer = await visitor.client.get(path)
        assert (answer.status_code, "Counting took longer than 0 s" in answer.text) == (413, True)


def test_a_request_needs_a_confirmation(shop: Stock) -> None:
    done = pillarbox("events", "discard", "--type", "order.placed", "--dry-run", PILLARBOX_STORE=shop.url)
    assert done.stdout == "would discard 1 event\n"
    assert pillarbox("events", "discard", "fresh", PILLARBOX_STORE=shop.url).returncode == 2
    assert shop.ask(REQUESTS) == []
    done = pillarbox("events", "retry", "--key", "k", "--json", PILLARBOX_STORE=shop.url)
    assert json.loads(done.stdout) == {"matched": 0, "requested": 0, "dry_run": False}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("retry",), 2, "Give either event ids or a filter."),
        (("retry", "fresh", "--type", "x"), 2, "Give either event ids or a filter."),
        (("retry", "sent"), 4, "'sent': not pending"),
        (("reschedule", "fresh"), 2, "Missing option '--in'"),
    ],
)
def test_an_invalid_request_is_rejected_with_the_reason(
    shop: Stock, arguments: tuple[str, ...], code: int, said: str
) -> None:
    done = pillarbox("events", *arguments, PILLARBOX_STORE=shop.url)
    assert done.returncode == code
    assert said in done.stderr
