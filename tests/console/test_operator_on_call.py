"""What an operator on call needs: states with counts, a page per destination, blocked keys in bulk, problem cards."""

import asyncio
import re
from collections import Counter

import pytest

from pillarbox.core.event import Event
from pillarbox.core.message import Held
from pillarbox.core.outcome import DELIVERED, Dead, Retry
from pillarbox.core.statistics import OutcomeStatistics
from pillarbox.ops.settings import Settings
from pillarbox.relay.routing import Route
from pillarbox.testing.conformance.lane_owner import LONG, Owner
from tests.console.conftest import Visit, Visitor
from tests.console.scene import fill
from tests.integration.cli.conftest import Stock
from tests.integration.cli.running import fresh_pillarbox

CONTROL = re.compile(
    r'<(button|summary|a class="button[^"]*"|a)\b([^>]*)>(.*?)</(?:button|summary|a)>', re.DOTALL | re.IGNORECASE
)


@pytest.fixture
def sqlite_stock(sqlite_url: str) -> Stock:
    """For what does not depend on the engine."""
    return Stock(sqlite_url)


@pytest.fixture
def blocked(sqlite_stock: Stock) -> Stock:
    """Three keys that are blocked for one reason, one for another, and a waiting event of each."""
    names = [f"{kind}{number}" for number in range(4) for kind in ("first", "later")]
    sqlite_stock.record(*(Event("order.placed", {}, event_id=name, key=f"k{name[-1]}") for name in names))

    async def block(store: object) -> None:
        owner = await Owner.of(store)  # type: ignore[arg-type]  # a store of the engine
        for message in await owner.ready(limit=100):
            number = int(message.event_id[-1])
            if message.event_id.startswith("first"):
                error = "no stock" if number == 3 else f"card {number} of Ada was declined"
                await owner.settle(Dead(error=error, block=True), message, to="billing")
            else:
                await owner.hold(Held.WAITING, message, to="billing")

    sqlite_stock.run(block)
    return sqlite_stock


async def test_states_are_tabs_with_counts(visit: Visit, blocked: Stock) -> None:
    visitor = await visit(blocked)
    page = await visitor.page_text("/events?state=blocked")
    tabs = dict(re.findall(r">([A-Z][a-z -]+) <span class=\"count-of\">([^<]+)</span></a>", page))
    assert tabs == {
        "Ready": "0",
        "In flight": "0",
        "Retrying": "0",
        "Delayed": "0",
        "Waiting": "4",
        "Parked": "0",
        "Blocked": "4",
        "Published": "0",
        "Dead-lettered": "0",
    }
    assert page.count('<span class="badge blocked">blocked</span>') == 4
    assert '<span class="badge waiting">waiting</span>' in await visitor.page_text("/events?state=waiting")
    states = (await visitor.client.get("/api/v1/events/states")).json()["states"]
    assert (states["blocked"], states["waiting"]["count"]) == ({"count": 4, "accuracy": "exact"}, 4)
    done = await asyncio.to_thread(fresh_pillarbox, "events", "count", PILLARBOX_STORE=blocked.url)
    assert "blocked\t4" in done.stdout


async def test_a_destination_has_a_page(visit: Visit, sqlite_stock: Stock) -> None:
    sqlite_stock.record(*(Event("order.placed", {}, event_id=f"e{number}") for number in range(4)))
    visitor = await visit(sqlite_stock)
    owner = await Owner.of(visitor.store)
    first, second, third, _ = await owner.ready()
    await owner.settle(Retry(delay=600, error="no route to host"), first, to="mail")
    await owner.settle(Dead(error="no such mailbox"), second, to="mail")
    await owner.settle(DELIVERED, third, to="mail")
    await visitor.store.destinations.report("mail", error="smtp refused", next_attempt=5)
    await visitor.store.admin.requests.override("mail", rate_limit=5, by="bob")
    sent = OutcomeStatistics(retried=1, dead=1)
    for _ in range(3):
        sent.count_delivered(0.1)
    await visitor.store.statistics.add(owner.relay, {"mail": sent})
    page = await visitor.page_text("/destination?name=mail")
    for shown in ("smtp refused", "1 retrying", "40.0 %", "by bob", "5/s", "<polyline", "no such mailbox", ">limited<"):
        assert shown in page, shown
    told = (await visitor.client.get("/api/v1/destination?name=mail")).json()
    assert (told["pending"], told["states"]) == ({"count": 1, "accuracy": "exact"}, {"retrying": 1})
    assert (told["state"], told["changed_by"], told["rate_limit"]) == ("limited", "bob", 5.0)
    assert (told["published_per_second"], told["failed_share"]) == (0.01, 0.4)
    assert told["recorded_per_second"] > 0
    assert told["oldest_seconds"] >= 0
    assert sum(told["published_last_hour"]) > 0
    done = await asyncio.to_thread(fresh_pillarbox, "destinations", "show", "mail", PILLARBOX_STORE=sqlite_stock.url)
    assert "overridden by  bob" in done.stdout
    assert re.search(r"pending +1\n", done.stdout)
    missing = await visitor.client.get("/destination?name=nowhere")
    assert missing.status_code == 404


async def test_events_without_a_route_count_for_the_destinations_of_their_routes(
    visit: Visit, sqlite_stock: Stock
) -> None:
    sqlite_stock.record(Event("order.placed", {}, event_id="a"), Event("order.lost", {}, event_id="b"))
    settings = Settings.load(None, {"PILLARBOX_STORE": sqlite_stock.url}, {})
    visitor = await visit(sqlite_stock, settings=settings)
    await visitor.store.admin.requests.override("search", rate_limit=5)
    await visitor.store.admin.requests.override("mail", rate_limit=5)

    async def pending(*routes: Route) -> dict[str, int]:
        object.__setattr__(settings, "routes", routes)
        found = (await (await visit(sqlite_stock, settings=settings)).client.get("/api/v1/destinations")).json()
        return {one["name"]: one["pending"]["count"] for one in found["destinations"]}

    assert await pending() == {"mail": 0, "search": 0, "": 2}
    placed = Route(event_type="order.placed", to=["mail", "search"])
    assert await pending(placed) == {"mail": 1, "search": 1, "": 1}
    assert await pending(placed, Route(to=["mail"])) == {"mail": 2, "search": 1}


async def test_blocked_keys_are_grouped_and_skipped_in_bulk(visit: Visit, blocked: Stock) -> None:
    visitor = await visit(blocked)
    page = await visitor.page_text("/keys")
    assert "card &lt;n&gt; of Ada was declined" in page
    groups = (await visitor.client.get("/api/v1/keys/groups")).json()["groups"]
    assert [(group["keys"], group["destination"]) for group in groups] == [(3, "billing"), (1, "billing")]
    decide = re.search(r'href="(/keys/decide\?action=skip[^"]+)"', page)
    assert decide is not None
    asked = await visitor.page_text(decide[1].replace("&amp;", "&"))
    assert "Skip the events that block <strong>3 keys</strong>?" in asked
    for stated in ("billing", "card &lt;n&gt; of Ada was declined", "first0", "order.placed"):
        assert stated in asked, stated
    wrong = await visitor.confirm("/keys/decide", entered={"count": "2"}, action="skip", group=groups[0]["group"])
    assert wrong.status_code == 409
    assert blocked.ask("SELECT count(*) FROM outbox_request") == [(0,)]
    done = await visitor.confirm("/keys/decide", action="skip", group=groups[0]["group"])
    assert done.status_code == 303
    found = blocked.ask("SELECT action, count(*) FROM outbox_request GROUP BY action")
    assert found == [("dead_letter", 3)]


async def test_a_confirmation_is_for_the_events_that_it_showed(visit: Visit, blocked: Stock) -> None:
    """Not for as many others: while the operator reads, one event may be settled and another one may block."""
    visitor = await visit(blocked)
    shown = await visitor.confirmation("/keys/decide", action="discard")
    assert shown["count"] == "4"
    asked = {"action": "discard", "all": True}
    headers = {"x-csrf-token": await visitor.token("/keys")}
    preview = (await visitor.client.post("/api/v1/keys/decide", json=asked | {"dry_run": True}, headers=headers)).json()
    assert preview["selection"] == shown["selection"]
    with blocked.transaction() as connection:
        connection.execute("UPDATE outbox_message SET event_id = 'precious' WHERE event_id = 'first0'")
    refused = [
        await visitor.post("/keys/decide", action="discard", **shown),
        await visitor.client.post(
            "/api/v1/keys/decide", json=asked | {"selection": preview["selection"]}, headers=headers
        ),
    ]
    assert [(one.status_code, "Other events match now" in one.text) for one in refused] == [(409, True)] * 2
    assert blocked.ask("SELECT count(*) FROM outbox_request") == [(0,)]


@pytest.mark.parametrize(("action", "request_"), [("retry", "retry"), ("skip", "dead_letter"), ("discard", "discard")])
async def test_the_command_and_the_api_act_on_blocked_keys_in_bulk(
    visit: Visit, blocked: Stock, action: str, request_: str
) -> None:
    done = await asyncio.to_thread(
        fresh_pillarbox, "keys", action, "--error", "declined", "--yes", "--json", PILLARBOX_STORE=blocked.url
    )
    assert '"requested":3' in done.stdout.replace(" ", ""), done.stderr
    visitor = await visit(blocked)
    headers = {"x-csrf-token": await visitor.token("/keys")}
    preview = await visitor.client.post(
        "/api/v1/keys/decide", json={"action": action, "all": True, "dry_run": True}, headers=headers
    )
    told = preview.json()
    assert (told["matched"], told["requested"], told["dry_run"]) == (4, 0, True)
    one = await visitor.client.post(
        "/api/v1/keys/decide", json={"action": action, "error": "no stock", "count": 1}, headers=headers
    )
    assert one.json()["requested"] == 1
    assert blocked.ask("SELECT action, count(*) FROM outbox_request GROUP BY action") == [(request_, 4)]
    none = await visitor.client.post("/api/v1/keys/decide", json={"action": action}, headers=headers)
    assert none.status_code == 400


def cards(page: str) -> dict[str, str]:
    """The text of each problem card, and its controls."""
    found = re.findall(r'<article class="problem"[^>]*>\s*<p>(.*?)</p>(.*?)</article>', page, re.DOTALL)
    return {re.sub(r"<[^>]+>", "", text): controls for text, controls in found}


async def test_each_problem_is_a_card_with_a_link_and_an_action(visit: Visit, blocked: Stock) -> None:
    visitor = await visit(blocked)
    owner = await Owner.of(visitor.store)
    await visitor.store.lanes.renew(owner.relay, lease=LONG, breakers={"mail": "open"})
    await visitor.store.admin.requests.override("billing", paused=True, by="ada")
    found = cards(await visitor.page_text("/"))
    assert list(found) == [
        "billing is paused by an operator.",
        "mail is unavailable.",
        "4 keys are blocked; pillarbox keys blocked lists them.",
    ]
    billing, mail, keys = found.values()
    assert 'href="/destination?name=billing"' in billing
    assert "Resume billing</button>" in billing
    assert "Pause mail</button>" in mail
    assert 'href="/keys"' in keys
    assert 'href="/keys/decide?action=retry"' in keys
    problems = (await visitor.client.get("/api/v1/status")).json()["problems"]
    assert [(one["kind"], one["destination"]) for one in problems] == [
        ("destination", "billing"),
        ("destination", "mail"),
        ("blocked_keys", None),
    ]
    assert ">closed<" not in await visitor.page_text("/destinations")


async def test_a_confirmation_states_destination_error_count_and_an_example(
    visit: Visit, with_dead_letters: Stock
) -> None:
    visitor = await visit(with_dead_letters)
    [group, _] = (await visitor.client.get("/api/v1/dead/groups")).json()["groups"]
    dead = f"/dead/decide?action=retry&group={group['group']}"
    for path in (dead, "/events/decide?action=discard&type=order.placed"):
        page = await visitor.page_text(path)
        question = page[page.index('class="panel confirm"') :]
        assert group["group"] not in re.sub(r"<[^>]+>", "", question[: question.index("</section>")])
        assert '<ul class="summary">' in question
    retried = await visitor.page_text(dead)
    for stated in (group["destination"], group["example"]["event_id"], group["reason"][:8], "<strong>1</strong>"):
        assert stated in retried, stated


PAGES = (
    "/",
    "/events",
    "/event?id=0193c2f0-6b1e-7c3a-9f57-000000000003",
    "/event?id=0193c2f0-6b1e-7c3a-9f57-000000000007",
    "/dead",
    "/dead?view=list",
    "/dead/edit?dead_letter_id=1",
    *(f"/dead/decide?action={action}" for action in ("retry", "discard")),
    *(f"/events/decide?action={action}&status=PENDING" for action in ("retry", "discard")),
    "/destinations",
    "/destination?name=mailer",
    "/keys",
    *(f"/keys/decide?action={action}" for action in ("retry", "skip", "discard")),
    "/relays",
    "/replay?destination=orders",
    "/inbox",
    "/store",
    "/audit",
)


def names(page: str) -> Counter[str]:
    """The accessible names of controls, except of links to the same page."""
    found = set()
    for number, (kind, attributes, inner) in enumerate(CONTROL.findall(page)):
        label = re.search(r'aria-label="([^"]+)"', attributes)
        name = label[1] if label else re.sub(r"<[^>]+>|\s+", " ", inner).strip()
        link = re.search(r'href="([^"]+)"', attributes)
        data = re.search(r'data-copy="([^"]+)"', attributes)
        if kind == "a" and "id" in attributes and 'class="id"' in attributes:
            continue
        found.add((name, link[1] if link else data[1] if data else str(number)))
    return Counter(name for name, _ in found)


async def test_no_two_controls_share_a_name(visit: Visit, sqlite_stock: Stock) -> None:
    await asyncio.to_thread(fill, sqlite_stock)
    visitor: Visitor = await visit(sqlite_stock)
    for path in PAGES:
        page = await visitor.page_text(path)
        repeated = {name: count for name, count in names(page).items() if count > 1 and "Copy" not in name}
        assert repeated == {}, path
    page = await visitor.page_text("/")
    assert "Ordering keys</a>" in page
    assert ">Keyboard</button>" in page


async def test_editing_under_a_mask_is_disabled_with_the_reason(visit: Visit, sqlite_stock: Stock) -> None:
    sqlite_stock.record(Event("order.placed", {"price": 1}, event_id="dead1"))
    await asyncio.to_thread(sqlite_stock.settle, dead1=(Dead(error="no"), "orders"))
    page = await (await visit(sqlite_stock, mask=["$.price"])).page_text("/event?id=dead1")
    assert re.search(r'<button type="button" disabled aria-describedby="cannot-edit">Edit and retry', page)
    assert "Masking rules hide a part of this event" in page
    assert "/dead/edit?" not in page
    assert "/dead/edit?" in await (await visit(sqlite_stock)).page_text("/event?id=dead1")
