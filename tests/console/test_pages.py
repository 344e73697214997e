"""Every page on every engine: it shows what the store has, and the next step if there is nothing."""

import asyncio
import re
from datetime import datetime

import pytest

from pillarbox import Inbox
from pillarbox.core.event import Event
from pillarbox.core.outcome import DELIVERED, Dead, Retry
from pillarbox.core.statistics import ConsumerStatistics
from pillarbox.ops.console.formatting import NOTHING
from pillarbox.ops.settings import Settings
from pillarbox.testing.conformance.lane_owner import Owner
from tests.console.conftest import Visit
from tests.integration.cli.conftest import Stock
from tests.integration.cli.running import fresh_pillarbox

PAGES = ("/", "/events", "/dead", "/destinations", "/keys", "/relays", "/inbox", "/store", "/audit")


@pytest.mark.parametrize("path", PAGES)
async def test_a_page_of_an_empty_store_says_what_to_do_next(visit: Visit, stock: Stock, path: str) -> None:
    page = await (await visit(stock)).page_text(path)
    assert "pillarbox " in page


async def test_the_overview_says_whether_events_flow(visit: Visit, with_dead_letters: Stock) -> None:
    page = await (await visit(with_dead_letters)).page_text("/")
    assert '<strong data-live="state">stopped</strong>' in page
    assert "No relay is running: start one with <code>pillarbox relay</code>" in page
    assert '<p class="value" data-live="dead_letters">2</p>' in page
    assert '<p class="value" data-live="backlog">2</p>' in page


async def test_events_of_every_table_are_listed(visit: Visit, with_dead_letters: Stock) -> None:
    page = await (await visit(with_dead_letters)).page_text("/events")
    assert all(f">{name}</a>" in page for name in ("dead1", "dead2", "stuck", "sent", "fresh"))


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("status=FAILED", {"dead1", "dead2", "stuck"}),
        ("status=PUBLISHED", {"sent"}),
        ("state=blocked", {"stuck"}),
        ("state=ready", {"fresh"}),
        ("state=dead_lettered", {"dead1", "dead2"}),
        ("state=published&status=PUBLISHED", {"sent"}),
        ("key=k", {"dead1", "dead2"}),
        ("destination=mail", {"dead2"}),
        ("type=order.lost", set()),
        ("since=1h&status=PENDING", {"fresh"}),
        ("until=1h", set()),
        ("error=timeout", {"dead2"}),
        ("aggregate=ORDER", set()),
    ],
)
async def test_the_url_has_the_filter(visit: Visit, with_dead_letters: Stock, query: str, found: set[str]) -> None:
    page = await (await visit(with_dead_letters)).page_text(f"/events?{query}")
    assert {name for name in ("dead1", "dead2", "stuck", "sent", "fresh") if f">{name}</a>" in page} == found


async def test_an_event_older_than_the_objective_degrades_the_flow(visit: Visit, stock: Stock) -> None:
    stock.record(Event("order.placed", {}, event_id="late"))
    for slo, state in (("1ms", "degraded"), ("1h", "flowing")):
        visitor = await visit(stock, slo=slo)
        await Owner.of(visitor.store)
        reported = (await visitor.client.get("/api/v1/status")).json()
        assert reported["state"] == state
        assert ("pillarbox events show late" in reported["reason"]) == (state == "degraded")


async def test_an_event_id_redirects_to_its_page(visit: Visit, shop: Stock) -> None:
    answer = await (await visit(shop)).client.get("/events?id=dead1&status=PENDING")
    assert (answer.status_code, answer.headers["location"]) == (303, "/event?id=dead1")


async def test_pages_continue_from_a_position(visit: Visit, stock: Stock) -> None:
    stock.record(*(Event("order.placed", {}, event_id=f"order-{number}") for number in range(7)))
    visitor = await visit(stock)
    first = (await visitor.client.get("/api/v1/events?limit=5")).json()
    second = (await visitor.client.get("/api/v1/events", params={"limit": 5, "after": first["after"]})).json()
    listed = [event["event_id"] for event in first["events"] + second["events"]]
    assert listed == [f"order-{number}" for number in reversed(range(7))]
    assert second["after"] is None


async def test_older_pages_keep_the_limit(visit: Visit, shop: Stock) -> None:
    visitor = await visit(shop)
    for path in ("/events?limit=2", "/dead?view=list&limit=1"):
        older = re.search(r'rel="next" href="([^"]+)"', await visitor.page_text(path))
        assert older is not None
        assert f"limit={path[-1]}" in older[1]


async def test_a_copy_button_copies_the_unescaped_text(visit: Visit, shop: Stock) -> None:
    shop.record(Event("order.placed", {}, event_id="a\u202eb"), Event("order.placed", {}, event_id="-rf"))
    visitor = await visit(shop)
    page = await visitor.page_text("/event?id=a%E2%80%AEb")
    assert "<code>a\\u202eb</code>" in page
    assert 'data-copy="a\u202eb"' in page
    assert r"pillarbox events show $&#39;a\xe2\x80\xaeb&#39;" in page
    assert "pillarbox events show -- -rf" in await visitor.page_text("/event?id=-rf")
    done = fresh_pillarbox("events", "show", "--", "-rf", PILLARBOX_STORE=shop.url)
    assert done.returncode == 0, done.stderr


async def test_an_event_shows_its_timeline(visit: Visit, with_dead_letters: Stock) -> None:
    page = await (await visit(with_dead_letters)).page_text("/event?id=dead2")
    assert "timeout of 30 s" in page
    assert "Dead-lettered" in page
    assert "pillarbox events show dead2" in page
    assert "pillarbox dead retry dead2" in page
    assert ">dead1</a>" in page  # its neighbour in the key


async def test_an_event_shows_the_duration_of_each_send(visit: Visit, stock: Stock) -> None:
    stock.record(*(Event("order.placed", {}, event_id=name) for name in ("slow", "fast", "skipped")))
    visitor = await visit(stock)
    owner = await Owner.of(visitor.store)
    slow, fast, skipped = await owner.ready()
    await owner.settle(Retry(delay=60, error="full", counted=False), slow, to="orders", seconds=0.012)
    await owner.settle(DELIVERED, fast, to="orders", seconds=0.0034)
    await owner.settle(DELIVERED, skipped, to="orders")
    assert "Attempt 1 failed after 12 ms, not counted" in await visitor.page_text("/event?id=slow")
    assert "Delivered in 3.4 ms, " in await visitor.page_text("/event?id=fast")
    assert "Delivered in" not in await visitor.page_text("/event?id=skipped")


async def test_dead_letters_are_filtered_by_their_error(visit: Visit, with_dead_letters: Stock) -> None:
    page = await (await visit(with_dead_letters)).page_text("/dead?error=timeout")
    assert ">dead2</a>" in page
    assert ">dead1</a>" not in page


async def test_dead_letters_are_grouped_by_reason(visit: Visit, stock: Stock) -> None:
    for number in range(3):
        stock.record(Event("order.placed", {}, event_id=f"order-{number}"))
    await asyncio.to_thread(
        lambda: stock.settle(
            **{f"order-{number}": (Dead(error=f"no stock of item {number}"), "orders") for number in range(3)}
        )
    )
    visitor = await visit(stock)
    page = await visitor.page_text("/dead")
    assert "no stock of item &lt;n&gt;" in page
    [group] = (await visitor.client.get("/api/v1/dead/groups")).json()["groups"]
    assert group["count"] == 3
    assert "Retry 3" in await visitor.page_text(f"/dead/decide?action=retry&group={group['group']}")
    assert (await visitor.client.get("/dead/decide?action=retry&group=all")).status_code == 400


async def test_blocked_keys_show_what_blocks_them(visit: Visit, with_dead_letters: Stock) -> None:
    page = await (await visit(with_dead_letters)).page_text("/keys")
    assert ">stuck</a>" in page
    assert "refused" in page


async def test_a_key_blocked_by_a_retry_shows_the_next_retry(visit: Visit, with_dead_letters: Stock) -> None:
    with_dead_letters.record(*(Event("order.placed", {}, event_id=name, key="k") for name in ("head", "second")))
    await asyncio.to_thread(with_dead_letters.delay_key, "head", "second")
    visitor = await visit(with_dead_letters)
    page = await visitor.page_text("/keys")
    assert re.search(r">next retry in \d+ min( \d+ s)?<", page)
    assert page.index("an operator decides") < page.index("next retry in")
    dead_lettered, waiting = (await visitor.client.get("/api/v1/keys")).json()["blocked"]
    assert (dead_lettered["event_id"], dead_lettered["next_retry_at"]) == ("stuck", None)
    assert (waiting["event_id"], waiting["waiting"], waiting["next_retry_at"] is None) == ("head", 1, False)


async def test_the_inbox_shows_the_statistics_of_each_consumer(visit: Visit, stock: Stock) -> None:
    inbox = Inbox()
    with stock.transaction() as transaction:
        inbox.admit(transaction, "by hand", "e1")
        inbox.add_statistics(transaction, ConsumerStatistics("billing", 1234, 5, 6, 7, "no <address>", 60.0))
        inbox.add_statistics(transaction, ConsumerStatistics("search", processed=3))
    page = await (await visit(stock, settings=Settings.load(None, {}, {}))).page_text("/inbox")
    rows = re.findall(r'<tr>\s*<td data-label="Consumer"[^>]*>(.+?)</td>(.+?)</tr>', page, re.DOTALL)
    assert {name: re.findall(r'class="(n|n bad)">([^<]+)<', row) for name, row in rows} == {
        "billing": [("n", "0"), ("n", "0"), ("n", "1,234"), ("n", "5"), ("n bad", "6"), ("n bad", "7")],
        "by hand": [("n", "1"), ("n", "0"), ("n", NOTHING), ("n", NOTHING), ("n", NOTHING), ("n", NOTHING)],
        "search": [("n", "0"), ("n", "0"), ("n", "3"), ("n", "0"), ("n", "0"), ("n", "0")],
    }
    assert page.count('<tr class="error">') == 1
    assert "</time> no &lt;address&gt;</div>" in page
    assert "Failed, 24 h" in page
    assert "Processed-event records are kept for 120 d. 0 are older" in page


def admit(stock: Stock, consumer: str, *event_ids: str) -> None:
    with stock.transaction() as transaction:
        for event_id in event_ids:
            Inbox().admit(transaction, consumer, event_id)


async def test_the_inbox_counts_what_the_next_pruning_deletes_by_consumer(visit: Visit, stock: Stock) -> None:
    admit(stock, "search", "e1", "e2")
    admit(stock, "billing", "e1")
    with stock.transaction() as transaction:
        transaction.execute("UPDATE outbox_inbox SET received_at = '2020-01-01T00:00:00.000Z'")
    admit(stock, "search", "e3")
    visitor = await visit(stock, settings=Settings.load(None, {}, {}))
    page = await visitor.page_text("/inbox")
    assert re.findall(r'data-label="To be pruned" class="n">([^<]+)<', page) == ["1", "2"]
    assert "3 are older; the next pruning deletes them." in page
    assert "pillarbox prune --dry-run" in page
    unknown = await (await visit(stock)).page_text("/inbox")
    assert "To be pruned" not in unknown
    done = await asyncio.to_thread(fresh_pillarbox, "inbox", "list", PILLARBOX_STORE=stock.url)
    assert "3 are older" in done.stderr
    assert [line.split()[:3] for line in done.stdout.splitlines()[1:]] == [["billing", "1", "1"], ["search", "3", "2"]]


async def test_counts_of_what_pruning_deletes_are_lower_bounds_beyond_a_limit(
    visit: Visit, shop: Stock, monkeypatch: pytest.MonkeyPatch
) -> None:
    admit(shop, "billing", "e1", "e2", "e3")
    with shop.transaction() as transaction:
        transaction.execute("UPDATE outbox_inbox SET received_at = '2020-01-01T00:00:00.000Z'")
    for module in ("pillarbox.stores.admin.archive", "pillarbox.ops.inbox"):
        monkeypatch.setattr(f"{module}.COUNTED", 1)
    page = await (await visit(shop, settings=Settings.load(None, {}, {}))).page_text("/inbox")
    assert 'data-label="To be pruned" class="n">\N{GREATER-THAN OR EQUAL TO} 2<' in page
    assert "the counts per consumer are lower bounds" in page


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/event?id=unknown", 404, "Event &#39;unknown&#39; not found"),
        ("/nowhere", 404, "There is no page /nowhere."),
        ("/events?status=LOST", 400, "status &#39;LOST&#39; is unknown"),
        ("/events?state=lost", 400, "state &#39;lost&#39; is unknown: use ready, in_flight"),
        ("/events?since=yesterday", 400, "neither an age such as 1h nor a time"),
        ("/events?after=here", 400, "is not a position in a list"),
        ("/dead?view=list&after=x", 400, "after &#39;x&#39; is not a number"),
        ("/event?id=sent&destination=mail", 404, "has no delivery to"),
    ],
)
async def test_an_invalid_request_is_rejected_with_the_reason(
    visit: Visit, shop: Stock, path: str, status: int, said: str
) -> None:
    answer = await (await visit(shop)).client.get(path)
    assert answer.status_code == status
    assert said in answer.text


@pytest.mark.parametrize(
    "path", ["/events?type=a", "/dead?type=a", "/dead?view=list&type=a", "/replay?type=a", "/audit?who=a"]
)
async def test_an_invalid_filter_stays_in_the_form(visit: Visit, stock: Stock, path: str) -> None:
    answer = await (await visit(stock)).client.get(f"{path}&since=yesterday")
    assert answer.status_code == 400
    reported, _, form = answer.text.partition('<form class="filter')
    assert "neither an age such as 1h nor a time" in reported
    assert 'value="yesterday"' in form
    assert 'value="a"' in form
    assert " fits" not in form


async def test_the_report_of_the_doctor_has_its_time(visit: Visit, stock: Stock) -> None:
    visitor = await visit(stock, settings=Settings.load(None, {"PILLARBOX_STORE": stock.url}, {}))
    first = (await visitor.client.get("/api/v1/doctor")).json()
    again = (await visitor.client.get("/api/v1/doctor")).json()
    assert again["checked_at"] == first["checked_at"]
    assert datetime.fromisoformat(first["checked_at"]).tzinfo is not None
    page = await visitor.page_text("/store?doctor=1")
    assert re.search(r"checked [\d.]+ m?s ago", page)
    assert page.index("<h2>Findings</h2>") < page.index("<h2>Tables</h2>")  # what the operator asked for comes first


async def test_a_store_without_tables_is_reported_with_its_remedy(
    visit: Visit, tmp_path_factory: pytest.TempPathFactory
) -> None:
    empty = Stock(f"sqlite:///{tmp_path_factory.mktemp('empty') / 'shop.db'}")
    answer = await (await visit(empty)).client.get("/events")
    assert answer.status_code == 503
    assert "run <code>pillarbox schema apply</code>" in answer.text
