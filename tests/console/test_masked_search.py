"""Masked text cannot be guessed by filters, counts or the audit."""

import threading
from dataclasses import replace

import pytest

from pillarbox.core.errors import ConfigurationError
from pillarbox.core.event import Event
from pillarbox.core.outcome import Dead
from pillarbox.ops.console.masking import HIDDEN, Masks
from pillarbox.ops.console.rule_cost import SEARCHED
from tests.console.conftest import Visit, Visitor
from tests.integration.cli.conftest import Stock

RULE = "text:[^ ]+@[^ ]+"
SECRET, SHOWN = "eve@example.org", "mailbox"


@pytest.fixture
def stock_with_errors(stock: Stock) -> Stock:
    """A dead letter and an event that holds its key, whose errors have text to mask."""
    for name in ("rejected", "more", "held"):
        stock.record(Event("order.placed", {"note": f"write to {SECRET}"}, event_id=name))
    error = Dead(error=f"{SHOWN} of {SECRET} is full")
    stock.settle(rejected=(error, "orders"), more=(error, "orders"), held=(replace(error, block=True), "orders"))
    return stock


async def counts(visitor: Visitor, error: str) -> list[int]:
    """How much of each kind is found by an error."""
    headers = {"x-csrf-token": await visitor.token("/dead")}
    counts = [
        len((await visitor.client.get(f"/api/v1/{path}", params={"error": error})).json()[name])
        for path, name in (("events", "events"), ("dead", "dead_letters"), ("dead/groups", "groups"))
    ]
    counts.append(len((await visitor.client.get("/dead/export", params={"error": error})).text.splitlines()))
    for path, body in (
        ("dead/discard", {"error": error}),
        ("dead/discard", {"error": error, "ids": ["held"]}),
        ("events/act", {"action": "discard", "state": "blocked", "error": error}),
    ):
        answer = await visitor.client.post(f"/api/v1/{path}", json=body | {"dry_run": True}, headers=headers)
        counts.append(answer.json()["matched"])
    return counts


async def test_filters_match_masked_text_only(visit: Visit, stock_with_errors: Stock) -> None:
    open_, masked = await visit(stock_with_errors), await visit(stock_with_errors, mask=[RULE])
    found = await counts(open_, SHOWN)
    assert all(found)
    assert await counts(open_, SECRET) == found
    assert await counts(masked, SHOWN) == found
    for guess in (SECRET, "eve@", "@", "example.org"):
        assert not any(await counts(masked, guess)), guess


async def test_the_audit_masks_the_filter_text(visit: Visit, stock_with_errors: Stock) -> None:
    open_, masked = await visit(stock_with_errors), await visit(stock_with_errors, mask=[RULE])
    headers = {"x-csrf-token": await open_.token("/dead")}
    await open_.client.post("/api/v1/dead/retry", json={"error": SECRET}, headers=headers)
    for path in ("/audit", "/audit/export", "/api/v1/audit"):
        assert SECRET in await open_.page_text(path)
        assert SECRET not in await masked.page_text(path)


SHOW_TEXT = (
    *("/events", "/event?id=rejected", "/dead", "/dead/export", "/keys", "/audit", "/audit/export"),
    *(f"/api/v1/{path}" for path in ("events", "event?id=rejected", "dead", "dead/groups", "audit")),
)


async def test_masking_runs_in_a_thread(
    visit: Visit, stock_with_errors: Stock, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply, threads = Masks._text, list[threading.Thread]()

    def noted(masks: Masks, said: str | None) -> str:
        if said:
            threads.append(threading.current_thread())
        return apply(masks, said)

    monkeypatch.setattr(Masks, "_text", noted)
    open_ = await visit(stock_with_errors)
    headers = {"x-csrf-token": await open_.token("/dead")}
    await open_.client.post("/api/v1/dead/retry", json={"error": SECRET, "ids": ["more"]}, headers=headers)
    for path in SHOW_TEXT:
        masked = await visit(stock_with_errors, mask=[RULE])
        threads.clear()
        await masked.page_text(path)
        assert threads, path
        assert threading.current_thread() not in threads, path


@pytest.mark.parametrize("rule", [r"(a+)+b", r"(?:a|ab)*c", r"\w+\d+x", r".*a.*b", r"(?:\d[ -]*?){13,16}"])
def test_a_masking_rule_with_unbounded_backtracking_is_rejected(rule: str) -> None:
    with pytest.raises(ConfigurationError, match="takes too long on some texts"):
        Masks([f"text:{rule}"])


@pytest.mark.parametrize("rule", [r"[^ ]+@[^ ]+", r"(?:\d{1,3}\.){3}\d{1,3}", r"(?i)bearer\s+\S+", r"\b\d{13,16}\b"])
def test_masking_rules_with_bounded_backtracking_are_accepted(rule: str) -> None:
    assert Masks([f"text:{rule}"]).text("nothing to hide") == "nothing to hide"


def test_text_beyond_the_search_limit_is_not_shown() -> None:
    masks = Masks([RULE])
    shown = masks.text("a" * SEARCHED + f" {SECRET}" * 1000)
    assert shown == "a" * SEARCHED + HIDDEN
    assert Masks().text("a" * 5000) == "a" * 5000
