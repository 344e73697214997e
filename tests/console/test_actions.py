"""Actions of the console equal those of the commands: the same events, the same audit."""

import asyncio

import pytest

from pillarbox.core.event import Event
from pillarbox.core.outcome import Dead
from tests.console.conftest import Visit, states
from tests.integration.cli.conftest import Stock
from tests.integration.cli.running import pillarbox


def audit(stock: Stock) -> list[tuple[str, str, str, int]]:
    rows = stock.ask("SELECT who, what, subject, count FROM outbox_audit ORDER BY audit_id")
    return [(who, what, subject, count) for who, what, subject, count in rows]


async def test_a_dead_letter_is_retried(visit: Visit, with_dead_letters: Stock) -> None:
    visitor = await visit(with_dead_letters)
    answer = await visitor.post("/event/act", id="dead1", destination="orders", action="retry")
    assert answer.status_code == 303
    assert "1 dead letter retried." in await visitor.page_text(answer.headers["location"])
    assert states(with_dead_letters, "dead1", "dead2") == ["PENDING", "FAILED"]


async def test_a_dead_letter_is_discarded(visit: Visit, with_dead_letters: Stock) -> None:
    await (await visit(with_dead_letters)).post("/event/act", id="dead2", destination="mail", action="discard")
    assert states(with_dead_letters, "dead1", "dead2") == ["FAILED", ""]


async def test_a_bulk_action_is_confirmed_by_its_exact_count(visit: Visit, with_dead_letters: Stock) -> None:
    visitor = await visit(with_dead_letters)
    page = await visitor.page_text("/dead/decide?action=retry&key=k")
    assert "Retry 2" in page
    answer = await visitor.confirm("/dead/decide", action="retry", key="k")
    assert "2 dead letters retried." in await visitor.page_text(answer.headers["location"])
    assert states(with_dead_letters, "dead1", "dead2", "stuck") == ["PENDING", "PENDING", "FAILED"]


async def test_a_count_that_differs_from_the_confirmed_one_changes_nothing(
    visit: Visit, with_dead_letters: Stock
) -> None:
    visitor = await visit(with_dead_letters)
    answer = await visitor.confirm("/dead/decide", entered={"count": "1"}, action="discard", key="k")
    assert answer.status_code == 409
    assert "The number changed to 2." in answer.text
    assert states(with_dead_letters, "dead1", "dead2") == ["FAILED", "FAILED"]


@pytest.mark.parametrize("path", ["/dead/decide", "/events/decide", "/keys/decide"])
@pytest.mark.parametrize("left_out", ["count", "selection"])
async def test_a_bulk_action_needs_the_whole_confirmation(
    visit: Visit, with_dead_letters: Stock, path: str, left_out: str
) -> None:
    """A count alone is also that of other events."""
    visitor = await visit(with_dead_letters)
    asked = {"action": "discard"} | ({"status": "PENDING"} if path == "/events/decide" else {})
    shown = await visitor.confirmation(path, **asked)
    assert set(shown) == {"count", "selection"}
    del shown[left_out]
    answer = await visitor.post(path, **asked, **shown)
    assert (answer.status_code, "The confirmation is missing" in answer.text) == (400, True)
    assert states(with_dead_letters, "dead1", "dead2") == ["FAILED", "FAILED"]
    assert with_dead_letters.ask("SELECT count(*) FROM outbox_request") == [(0,)]


async def test_pending_events_are_requested(visit: Visit, with_dead_letters: Stock) -> None:
    visitor = await visit(with_dead_letters)
    assert "Reschedule 1" in await visitor.page_text("/events/decide?action=reschedule&status=PENDING")
    await visitor.confirm("/events/decide", entered={"delay": "10 min"}, action="reschedule", status="PENDING")
    asked = with_dead_letters.ask("SELECT action, event_id, delay, requested_by FROM outbox_request")
    assert asked == [("reschedule", "fresh", 600.0, "ada")]


async def test_the_first_event_of_a_blocked_key_is_dead_lettered(visit: Visit, with_dead_letters: Stock) -> None:
    await (await visit(with_dead_letters)).post("/keys/act", id="stuck", destination="orders", action="skip")
    assert with_dead_letters.ask("SELECT action, event_id, requested_by FROM outbox_request") == [
        ("dead_letter", "stuck", "ada")
    ]


async def test_an_event_that_waits_for_its_retry_is_sent_now_or_dead_lettered(visit: Visit, stock: Stock) -> None:
    stock.record(*(Event("order.placed", {}, event_id=name, key="k") for name in ("head", "second")))
    await asyncio.to_thread(stock.delay_key, "head", "second")
    visitor = await visit(stock)
    for action in ("retry", "skip"):
        await visitor.post("/keys/act", id="head", destination="orders", action=action)
    asked = stock.ask("SELECT action, event_id, requested_by FROM outbox_request ORDER BY request_id")
    assert asked == [("retry", "head", "ada"), ("dead_letter", "head", "ada")]


async def test_a_destination_is_paused_limited_and_resumed(visit: Visit, with_dead_letters: Stock) -> None:
    visitor = await visit(with_dead_letters)
    await visitor.post("/destinations/override", destination="orders", action="pause")
    await visitor.post("/destinations/override", destination="orders", action="limit", limit="500/s")
    page = await visitor.page_text("/destinations")
    assert '<span class="badge paused">paused</span>' in page
    assert "500/s" in page
    await visitor.post("/destinations/override", destination="orders", action="resume")
    await visitor.post("/destinations/override", destination="orders", action="open")
    assert with_dead_letters.ask("SELECT paused, breaker FROM outbox_destination") in ([(0, "open")], [(False, "open")])


async def test_a_destination_with_dead_letters_stays_listed_without_a_relay(
    visit: Visit, with_dead_letters: Stock
) -> None:
    visitor = await visit(with_dead_letters)
    for action in ("pause", "resume", "pause"):
        assert (await visitor.post("/destinations/override", destination="mail", action=action)).status_code == 303
    assert (await visitor.post("/destinations/override", destination="mail", action="resume")).status_code == 303
    assert 'destination?name=mail">mail</a>' in await visitor.page_text("/destinations")
    listed = (await visitor.client.get("/api/v1/destinations")).json()["destinations"]
    assert [one["name"] for one in listed] == ["mail", "orders", ""]


async def test_an_unlisted_destination_is_paused_by_its_form(visit: Visit, shop: Stock) -> None:
    visitor = await visit(shop)
    assert 'name="force" value="yes"' in await visitor.page_text("/destinations")
    assert (await visitor.post("/destinations/override", destination="to come", action="pause")).status_code == 404
    await visitor.post("/destinations/override", destination="to come", action="pause", force="yes")
    assert shop.ask("SELECT destination FROM outbox_destination WHERE paused") == [("to come",)]


async def test_everything_is_paused_and_resumed(visit: Visit, with_dead_letters: Stock) -> None:
    visitor = await visit(with_dead_letters)
    await visitor.post("/everything", action="pause")
    assert "Resume all" in await visitor.page_text("/")
    await visitor.post("/everything", action="resume")
    assert "Pause all" in await visitor.page_text("/")


@pytest.mark.parametrize(
    ("action", "command"),
    [
        (("/event/act", {"id": "dead1", "destination": "orders", "action": "retry"}), ("dead", "retry", "dead1")),
        (
            ("/event/act", {"id": "dead1", "destination": "orders", "action": "discard"}),
            ("dead", "discard", "dead1", "-y"),
        ),
        (("/destinations/override", {"destination": "orders", "action": "pause"}), ("destinations", "pause", "orders")),
        (("/everything", {"action": "pause"}), ("destinations", "pause", "-y")),
        (
            ("/dead/edit", {"dead_letter_id": "1", "headers": "n: 1", "action": "send"}),
            ("dead", "edit", "dead1", "--header", "n=2", "-y"),
        ),
    ],
)
async def test_the_console_and_the_command_write_the_same_audit_entries(
    visit: Visit, with_dead_letters: Stock, action: tuple[str, dict[str, str]], command: tuple[str, ...]
) -> None:
    visitor = await visit(with_dead_letters)
    await visitor.post(action[0], **action[1])
    await visitor.store.aclose()
    [by_console] = audit(with_dead_letters)
    assert by_console[0] == "ada"
    await asyncio.to_thread(_undo, with_dead_letters)
    done = pillarbox(*command, PILLARBOX_STORE=with_dead_letters.url, USER="ben", LOGNAME="ben")
    assert done.returncode == 0, done.stderr
    assert audit(with_dead_letters)[-1] == ("ben", *by_console[1:])


def _undo(stock: Stock) -> None:
    """A dead letter that is gone comes back as it was."""
    if states(stock, "dead1") == [""]:
        stock.record(Event("order.placed", {}, event_id="dead1", key="k"))
    if states(stock, "dead1") == ["PENDING"]:
        stock.settle(dead1=(Dead(error="refused"), "orders"))


async def test_the_audit_is_listed_and_exported(visit: Visit, with_dead_letters: Stock) -> None:
    visitor = await visit(with_dead_letters)
    await visitor.post("/event/act", id="dead1", destination="orders", action="retry")
    await visitor.post("/event/act", id="dead2", destination="mail", action="discard")
    assert "retry" in await visitor.page_text("/audit?who=ada&what=retry")
    lines = (await visitor.client.get("/audit/export")).text.splitlines()
    assert lines[0] == "number,at,who,what,subject,count,detail"
    assert [line.split(",")[2:4] for line in lines[1:]] == [["ada", "discard"], ["ada", "retry"]]


@pytest.mark.parametrize(
    ("path", "fields", "status"),
    [
        ("/event/act", {"id": "unknown", "destination": "", "action": "retry"}, 404),
        ("/event/act", {"id": "dead1", "destination": "orders", "action": "explode"}, 400),
        ("/event/act", {"id": "sent", "destination": "orders", "action": "retry"}, 409),
        ("/event/act", {"id": "sent", "destination": "orders", "action": "discard"}, 409),
        ("/events/decide", {"action": "reschedule", "status": "PENDING", "count": "1", "delay": "soon"}, 400),
        ("/destinations/override", {"destination": "orders", "action": "limit", "limit": "0/s"}, 400),
        ("/destinations/override", {"action": "pause"}, 400),
        ("/destinations/override", {"destination": "*", "action": "pause"}, 400),
        ("/destinations/override", {"destination": "ordres", "action": "open"}, 404),
        ("/relays/drain", {"relay": "*"}, 400),
        ("/relays/drain", {"relay": "unknown"}, 404),
        ("/keys/act", {"id": "fresh", "destination": "", "action": "skip"}, 404),
        ("/keys/act", {"id": "fresh", "destination": "", "action": "retry"}, 404),
        ("/keys/act", {"id": "stuck", "destination": "mail", "action": "retry"}, 404),
        ("/keys/act", {"action": "retry"}, 404),
        ("/everything", {"action": ""}, 400),
    ],
)
async def test_an_impossible_action_is_rejected_and_changes_nothing(
    visit: Visit, shop: Stock, path: str, fields: dict[str, str], status: int
) -> None:
    answer = await (await visit(shop)).post(path, **fields)
    assert answer.status_code == status, answer.text
    assert audit(shop) == []
