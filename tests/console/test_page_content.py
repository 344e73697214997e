"""The content of pages: what an event waits for, failing destinations, singular and plural forms."""

import asyncio
import json
import re
from datetime import UTC, datetime, timedelta

import pytest

from pillarbox.core.event import Event
from pillarbox.core.lane import RelayRegistration
from pillarbox.core.message import Held
from pillarbox.core.outcome import Dead, Outcome, Retry
from pillarbox.core.statistics import OUTBOX, BacklogStatistics, OutcomeStatistics
from pillarbox.core.store import EVERYWHERE
from pillarbox.ops.console import HostLogin, User
from pillarbox.testing.conformance.lane_owner import LONG, Owner
from tests.console.conftest import Visit, Visitor
from tests.integration.cli.conftest import Stock
from tests.integration.cli.running import fresh_pillarbox


@pytest.fixture
def sqlite_stock(sqlite_url: str) -> Stock:
    """For what does not depend on the engine."""
    return Stock(sqlite_url)


async def follower(visit: Visit, stock: Stock, outcome: Outcome | Held) -> Visitor:
    """Twenty events of one key, of which the first became of what is said; a relay has fetched ten of them."""
    stock.record(*(Event("order.placed", {}, event_id=f"order-{n:02}", key="k") for n in range(20)))
    visitor = await visit(stock)
    owner = await Owner.of(visitor.store)
    first, *waiting = await owner.ready()
    if isinstance(outcome, Held):
        await owner.hold(outcome, first, to="orders")
    else:
        await owner.settle(outcome, first, to="orders")
    await owner.hold(Held.WAITING, *waiting[:9], to="orders")
    return visitor


@pytest.mark.parametrize(
    ("outcome", "why"),
    [
        (Dead(error="refused", block=True), "blocked until an operator decides"),
        (Retry(delay=590, error="refused"), r"retry in 9 min \d+ s"),
        (Retry(delay=0, error="refused"), "retry due"),
        (Held.PARKED, "destination unavailable"),
    ],
)
async def test_a_waiting_event_names_the_event_it_waits_for(
    visit: Visit, stock: Stock, outcome: Outcome | Held, why: str
) -> None:
    page = await (await follower(visit, stock, outcome)).page_text("/event?id=order-08")
    assert re.search(rf"Waiting for order\.placed <a [^>]+>order-00</a> \({why}\)", page)
    assert re.findall(r'<td data-label="Event"[^>]*><a [^>]+>([^<]+)<', page) == [
        f"order-{n:02}" for n in (3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)
    ]
    visitor = await visit(stock)
    assert "Waiting for" not in await visitor.page_text("/event?id=order-00")
    reported = (await visitor.client.get("/api/v1/event?id=order-08")).json()["waiting_for_events"]
    assert [(head["event_id"], head["event_type"]) for head in reported] == [("order-00", "order.placed")]
    assert (await visitor.client.get("/api/v1/event?id=order-00")).json()["waiting_for_events"] == []


async def test_an_event_names_the_destination_that_parks_it(visit: Visit, sqlite_stock: Stock) -> None:
    sqlite_stock.record(Event("order.placed", {}, event_id="order-00"))
    visitor = await visit(sqlite_stock)
    owner = await Owner.of(visitor.store)
    await owner.hold(Held.PARKED, *await owner.ready(), to="orders")
    assert "Waits for" not in await visitor.page_text("/event?id=order-00")
    await visitor.store.lanes.renew(owner.relay, lease=LONG, breakers={"orders": "open"})
    assert "Parked: orders (breaker open)" in await visitor.page_text("/event?id=order-00")
    [reported] = (await visitor.client.get("/api/v1/event?id=order-00")).json()["waiting_for_destinations"]
    assert reported == {
        "destination": "orders",
        "state": "unavailable",
        "breaker": "open",
        "forced": False,
        "rate_limit": None,
    }
    shown = await asyncio.to_thread(fresh_pillarbox, "events", "show", "order-00", PILLARBOX_STORE=sqlite_stock.url)
    assert "waiting for orders (breaker open)" in shown.stdout
    as_json = await asyncio.to_thread(
        fresh_pillarbox, "events", "show", "order-00", "--json", PILLARBOX_STORE=sqlite_stock.url
    )
    assert json.loads(as_json.stdout)["waiting_for_destinations"] == [reported]


async def test_a_waiting_event_names_the_paused_destination(visit: Visit, sqlite_stock: Stock) -> None:
    visitor = await follower(visit, sqlite_stock, Held.PARKED)
    await visitor.store.admin.requests.override(EVERYWHERE, paused=True, by="ada")
    assert "(destination paused)" in await visitor.page_text("/event?id=order-08")


async def test_event_ids_are_shortened_to_their_ends(visit: Visit, sqlite_stock: Stock) -> None:
    whole = "0193c2f0-6b1e-7c3a-9f57-00000000002a"
    sqlite_stock.record(Event("order.placed", {}, event_id=whole))
    page = await (await visit(sqlite_stock)).page_text("/events")
    assert f'title="{whole}">\N{HORIZONTAL ELLIPSIS}00000000002a</a>' in page


async def test_relay_ids_are_shortened_to_their_ends(visit: Visit, sqlite_stock: Stock) -> None:
    """Ids of relays that started at about the same time begin alike."""
    visitor = await visit(sqlite_stock)
    for end in ("02da419aa7fe", "0f46de691a21"):
        relay = RelayRegistration(id=f"01a1f42d-0753-77e2-83b8-{end}", host="shop", version="1")
        await visitor.store.lanes.join(relay, lease=LONG)
    page = await visitor.page_text("/relays")
    assert re.findall(r'title="([^"]+)">\u2026(\w+)</code>', page) == [
        (f"01a1f42d-0753-77e2-83b8-{end}", end) for end in ("02da419aa7fe", "0f46de691a21")
    ]


async def test_an_event_that_was_never_sent_has_no_retry(visit: Visit, sqlite_stock: Stock) -> None:
    tomorrow = datetime.now(UTC) + timedelta(days=1, minutes=1)
    sqlite_stock.record(Event("invoice.due", {}, event_id="due", available_at=tomorrow))
    visitor = await visit(sqlite_stock)
    page = await visitor.page_text("/event?id=due")
    assert ("First attempt in 1 d" in page, "Next retry" in page) == (True, False)


async def test_a_retry_that_is_late_is_due(visit: Visit, sqlite_stock: Stock) -> None:
    sqlite_stock.record(Event("order.placed", {}, event_id="late"))
    await asyncio.to_thread(sqlite_stock.settle, late=(Retry(delay=0, error="refused"), "orders"))
    page = await (await visit(sqlite_stock)).page_text("/events")
    assert re.search(r'>due</time><span class="note">, 1 failed</span>', page)


async def test_a_group_links_to_its_dead_letters_and_keeps_the_filter(visit: Visit, sqlite_stock: Stock) -> None:
    errors = {"red1": "no red paint", "red2": "no red paint", "blue": "no blue paint"}
    sqlite_stock.record(*(Event("wall.painted", {}, event_id=name) for name in errors))
    await asyncio.to_thread(sqlite_stock.settle, **{name: (Dead(error=e), "orders") for name, e in errors.items()})
    visitor = await visit(sqlite_stock)
    found = re.search(r'href="([^"]+group=[^"]+)">wall.painted', await visitor.page_text("/dead?error=paint"))
    assert found is not None
    path = found[1].replace("&amp;", "&")
    assert "error=paint" in path
    page = await visitor.page_text(path)
    assert {name for name in errors if f">{name}</a>" in page} == {"red1", "red2"}
    assert "Retry 2" in await visitor.page_text(path.replace("/dead?view=list", "/dead/decide?action=retry"))
    assert re.search(r'href="/dead/decide\?action=retry&amp;[^"]*group=', page)
    exported = (await visitor.client.get(path.replace("/dead", "/dead/export"))).text
    assert len(exported.splitlines()) == 2
    assert "Dead letters with one reason only." in page
    assert (await visitor.client.get("/dead?view=list&group=red")).status_code == 400


async def test_a_page_says_that_there_are_more_reasons(visit: Visit, sqlite_stock: Stock) -> None:
    names = [f"type.{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(101)]
    sqlite_stock.record(*(Event(name, {}, event_id=name) for name in names))
    await asyncio.to_thread(sqlite_stock.settle, **{name: (Dead(error="no"), "orders") for name in names})
    assert "The 100 largest of 101 reasons are shown." in await (await visit(sqlite_stock)).page_text("/dead")


async def test_blocking_events_are_counted_apart_from_dead_letters(visit: Visit, shop: Stock) -> None:
    page = await (await visit(shop)).page_text("/dead/decide?action=retry")
    assert "<strong>2 dead letters</strong> and <strong>1 event that blocks its key</strong> now?" in page
    assert "<code>pillarbox dead retry --all</code>" in page


@pytest.mark.parametrize(
    "path", ["/dead/decide?action=discard", "/events/decide?action=retry&status=PENDING", "/replay?destination=orders"]
)
async def test_a_viewer_sees_no_form_that_would_be_rejected(visit: Visit, shop: Stock, path: str) -> None:
    page = await (await visit(shop, login=HostLogin(lambda request: User(name="vera")))).page_text(path)
    assert "This action needs the role operator; vera has the role viewer." in page
    assert 'method="post"' not in page
    assert 'method="post"' in await (await visit(shop)).page_text(path)


async def test_a_destination_with_mostly_failed_sends_is_failing(visit: Visit, sqlite_stock: Stock) -> None:
    visitor = await visit(sqlite_stock)
    owner = await Owner.of(visitor.store)
    breakers = {"billing": "closed", "orders": "closed", "mailer": "open"}
    await visitor.store.lanes.renew(owner.relay, lease=900, breakers=breakers)
    fine = OutcomeStatistics(retried=1)
    fine.count_delivered(0.1)
    fine.count_delivered(0.1)
    await visitor.store.statistics.add(owner.relay, {"billing": OutcomeStatistics(retried=3, dead=1), "orders": fine})
    page = await visitor.page_text("/")
    failing = page[page.index("Unavailable or failing destinations") :]
    assert re.findall(r'name=(\w+)">\w+</a></td><td data-label="State"><span [^>]+>([\w-]+)<', failing) == [
        ("billing", "available"),
        ("mailer", "unavailable"),
    ]
    assert failing.count(">failing</span>") == 1
    assert "billing is available, but 100 % of the sends of the last five minutes failed." in page
    page = await visitor.page_text("/destinations")
    assert re.findall(r'data-label="Failed" class="([^"]+)">([^<]+)<', page) == [
        ("n bad", "100.0 %"),
        ("n", "outage"),
        ("n", "33.3 %"),
    ]


async def test_an_unknown_rate_has_no_unit(visit: Visit, sqlite_stock: Stock) -> None:
    visitor = await visit(sqlite_stock)
    (sent := OutcomeStatistics()).count_delivered(0.1)  # without a history, so that arrivals are unknown
    await visitor.store.statistics.add("relay-1", {"search": sent, "mail": OutcomeStatistics()})
    page = await visitor.page_text("/destination?name=search")
    assert re.search(r'<h2>In</h2><p class="value">\u2013</p>', page)
    assert "at most" in page
    assert "at most" not in await visitor.page_text("/destination?name=mail")
    for _ in range(2):  # nothing was recorded between two samples
        level = BacklogStatistics(recorded=40, backlog=2, oldest=600.0, dead=0)
        await visitor.store.statistics.add("relay-1", {OUTBOX: level})
    assert '<h2>In</h2><p class="value">0.0/s</p>' in await visitor.page_text("/destination?name=search")


async def test_a_long_error_is_clamped_in_a_list_and_complete_on_the_event_page(
    visit: Visit, sqlite_stock: Stock
) -> None:
    error = "the broker said a batch: " + "no " * 700
    sqlite_stock.record(Event("order.placed", {}, event_id="long"))
    await asyncio.to_thread(sqlite_stock.settle, long=(Retry(delay=60, error=error), "orders"))
    visitor = await visit(sqlite_stock)
    assert '<div class="clamp" tabindex="0" title="Press to expand">the broker said' in await visitor.page_text(
        "/events"
    )
    assert '<p class="said">the broker said' in await visitor.page_text("/event?id=long")


async def test_alarms_have_singular_and_plural_forms(visit: Visit, sqlite_stock: Stock) -> None:
    store = (await visit(sqlite_stock)).store
    await store.lanes.join(RelayRegistration(id="one", name="one", host="h", version="1"), lease=-1)
    reported = await (await visit(sqlite_stock)).page_text("/")
    assert "1 relay ended without releasing its lanes; no other relay is running to acquire them." in reported
    assert "<span>ended, 0 lanes</span>" in reported
    await store.lanes.join(RelayRegistration(id="two", name="two", host="h", version="1"), lease=-1)
    await store.lanes.join(RelayRegistration(id="three", name="three", host="h", version="1"), lease=900)
    await store.lanes.renew("three", lease=900, breakers={"orders": "closed"})
    reported = await (await visit(sqlite_stock)).page_text("/")
    assert "2 relays ended without releasing their lanes; other relays acquire them." in reported
    assert "<span>running, 0 lanes</span>" in reported
    assert "The only known destination is available." in reported


async def test_an_alarm_names_the_objective(visit: Visit, sqlite_stock: Stock) -> None:
    old = datetime.now(UTC) - timedelta(hours=1)
    sqlite_stock.record(Event("order.placed", {}, event_id="old"))
    with sqlite_stock.transaction() as transaction:
        transaction.execute(f"UPDATE outbox_message SET recorded_at = '{old:%Y-%m-%dT%H:%M:%S}.000Z'")
    assert ", more than the objective of 1 min." in await (await visit(sqlite_stock)).page_text("/")


async def test_a_filter_suggests_the_known_destinations(visit: Visit, shop: Stock) -> None:
    visitor = await visit(shop)
    await visitor.post("/destinations/override", destination='a"<b', action="pause", force="on")
    await visitor.page_text("/destinations")
    for path in ("/events", "/dead", "/dead?view=list"):
        page = await visitor.page_text(path)
        assert '<option value="orders"></option>' in page
        assert 'name="destination" value="" placeholder="orders"' in page
        assert '<option value="a&#34;&lt;b"></option>' in page


async def test_a_destination_in_a_list_is_a_link(visit: Visit, shop: Stock) -> None:
    visitor = await visit(shop)
    for path in ("/events", "/dead", "/dead?view=list"):
        assert '<a href="/destination?name=orders">orders</a>' in await visitor.page_text(path)
