"""A replay starts from a count that says what it is based on."""

import pytest

from pillarbox.admin.listing import EventFilter
from pillarbox.admin.replay import Replay
from pillarbox.core.event import Event
from pillarbox.core.outcome import DELIVERED
from pillarbox.ops import replay_runs
from pillarbox.ops.console.pages import replays
from tests.console.conftest import Visit
from tests.integration.cli.conftest import Stock

PLACES = ["orders", "orders", "orders", "mail", "orders", "late", "late", "mail"]


@pytest.fixture
def past(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> Stock:
    """Eight deliveries, of which the console looks at five and the command line at all."""
    monkeypatch.setattr(replay_runs, "HISTORY_SCANNED", 1)
    monkeypatch.setattr(replays, "QUERIES", 5)
    names = {f"evt{number}": place for number, place in enumerate(PLACES)}
    stock = Stock(sqlite_url)
    stock.record(*(Event("order.placed", {}, event_id=name) for name in names))
    stock.settle(**{name: (DELIVERED, place) for name, place in names.items()})
    return stock


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("id=evt3", "<strong>1 delivery</strong>"),
        ("limit=4", "<strong>4 deliveries</strong>"),
        ("destination=orders", "<strong>at least 4 deliveries</strong>"),
        ("destination=orders", "The count covers the first 5 deliveries of this range"),
        ("destination=late", "No match among the first 5 deliveries of this range; the rest was not searched"),
        ("type=another", "The history has no matching deliveries"),
    ],
)
async def test_a_count_says_how_much_was_scanned(visit: Visit, past: Stock, asked: str, said: str) -> None:
    assert said in await (await visit(past)).page_text(f"/replay?{asked}")


async def test_a_count_may_be_a_lower_bound(visit: Visit, past: Stock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay_runs, "COUNTED", 2)
    monkeypatch.setattr(replays, "COUNTED", 2)
    assert "<strong>2 or more deliveries</strong>" in await (await visit(past)).page_text("/replay?destination=orders")


async def test_a_partial_count_replays_all_matches(visit: Visit, past: Stock) -> None:
    visitor = await visit(past)
    answer = await visitor.post("/replay", destination="mail")
    assert "of at least 1 delivery started" in await visitor.page_text(answer.headers["location"])
    assert past.ask("SELECT count(*) FROM outbox_message") == [(2,)]


async def test_a_complete_count_is_the_expected_total(visit: Visit, past: Stock) -> None:
    visitor = await visit(past)
    await visitor.post("/replay", limit="4")
    [entry] = (await visitor.client.get("/api/v1/audit")).json()["audit"]
    assert (entry["count"], entry["detail"]["expected"]) == (4, 4)


async def test_the_audit_shows_the_progress_of_a_replay_and_refreshes(visit: Visit, past: Stock) -> None:
    visitor = await visit(past)
    plan = Replay(wanted=EventFilter(destination="mail"), to="again")
    replay = await visitor.store.admin.replays.begin(plan, by="ada", expected=2)
    page = await visitor.page_text("/audit?what=replay")
    assert '<progress aria-label="Copied" value="0" max="2">' in page
    assert "0 of 2 copied" in page
    assert 'hx-get="/audit?what=replay"' in page
    await replay_runs.resume(visitor.store, replay)
    page = await visitor.page_text("/audit?what=replay")
    assert "2 copied" in page
    assert "<progress" not in page
    assert "hx-get" not in page


async def test_a_replay_without_a_count_has_an_indeterminate_progress(visit: Visit, past: Stock) -> None:
    visitor = await visit(past)
    await visitor.store.admin.replays.begin(Replay(), by="ada")
    page = await visitor.page_text("/audit")
    assert '<progress aria-label="Copied">' in page
    assert "0 copied" in page


async def test_a_replay_without_matches_is_rejected(visit: Visit, past: Stock) -> None:
    answer = await (await visit(past)).post("/replay", destination="late")
    assert answer.status_code == 413
    assert "Narrow it by type, key or time" in answer.text
    assert past.ask("SELECT what FROM outbox_audit") == []


async def test_the_command_line_counts_without_a_limit(visit: Visit, past: Stock) -> None:
    looked: list[int] = []
    late = Replay(wanted=EventFilter(destination="late"))
    store = (await visit(past)).store
    assert await replay_runs.count(store, late, on_query=looked.append) == replay_runs.Count(2)
    assert looked == [1] * len(PLACES)
