"""Exports of dead letters: the same lines from the console and from the command line."""

import json
from typing import Any

import pytest

from pillarbox.admin.dead_letters import DeadLetterFilter
from pillarbox.core.event import Event
from pillarbox.core.outcome import Dead
from pillarbox.ops import dead_letter_export, exports
from pillarbox.ops.console import User
from pillarbox.ops.console.logins import HostLogin
from tests.console.conftest import Visit
from tests.integration.cli.conftest import Stock
from tests.integration.cli.running import pillarbox

CARRIED = {"content_type", "headers", "payload", "payload_base64"}


@pytest.fixture
def stock_with_dead_letters(stock: Stock) -> Stock:
    """Three dead letters of one key and one of none."""
    carried = {"json": {"email": "ada@example.com"}, "loose": b'{"email": "ada@example.com"}', "bytes": b"\xff\x00"}
    for name, payload in carried.items():
        kind = "application/octet-stream" if name == "bytes" else "application/json"
        headers = {"authorization": "Bearer x"}
        stock.record(Event("order.placed", payload, event_id=name, key="k", content_type=kind, headers=headers))
    stock.record(Event("order.placed", {}, event_id="other"))
    stock.settle(**{name: (Dead(error="no"), "orders") for name in (*carried, "other")})
    return stock


def read(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


async def test_an_export_streams_all_matches_in_bounded_memory(
    visit: Visit, stock_with_dead_letters: Stock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letter_export, "PAGE", 2)
    monkeypatch.setattr(dead_letter_export, "BATCH", 1)
    answer = await (await visit(stock_with_dead_letters)).client.get("/dead/export?key=k")
    assert answer.headers["content-disposition"].startswith("attachment")
    third, second, first = read(answer.text)
    email = {"email": "ada@example.com"}
    assert (first["payload"], first["headers"], first["dead_letter_id"]) == (email, {"authorization": "Bearer x"}, 1)
    assert (second["payload"], second["payload_base64"]) == (email, "eyJlbWFpbCI6ICJhZGFAZXhhbXBsZS5jb20ifQ==")
    assert (third["payload_base64"], "payload" in third) == ("/wA=", False)


async def test_the_export_equals_that_of_the_command(visit: Visit, stock_with_dead_letters: Stock) -> None:
    done = pillarbox("dead", "export", "--type", "order.placed", PILLARBOX_STORE=stock_with_dead_letters.url)
    reported = (await (await visit(stock_with_dead_letters)).client.get("/dead/export?type=order.placed")).text
    assert read(reported) == read(done.stdout)
    assert len(read(reported)) == 4


async def test_an_export_without_the_right_has_no_payloads(visit: Visit, stock_with_dead_letters: Stock) -> None:
    whole = read((await (await visit(stock_with_dead_letters)).client.get("/dead/export")).text)
    vera = HostLogin(lambda _: User(name="vera"))
    reported = read((await (await visit(stock_with_dead_letters, login=vera)).client.get("/dead/export")).text)
    assert reported == [{name: value for name, value in line.items() if name not in CARRIED} for line in whole]


async def test_masks_apply_to_the_export(visit: Visit, stock_with_dead_letters: Stock) -> None:
    visitor = await visit(stock_with_dead_letters, mask=["$.email", "header:authorization"])
    answer = await visitor.client.get("/dead/export?key=k")
    assert "ada@" not in answer.text
    assert "Bearer" not in answer.text
    found = [line["payload"] for line in read(answer.text) if "payload" in line]
    assert found == [{"email": "•••"}, {"email": "•••"}]
    assert not any("payload_base64" in line for line in read(answer.text))


async def test_a_dead_letter_discarded_during_an_export_is_left_out(
    visit: Visit, stock_with_dead_letters: Stock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letter_export, "BATCH", 1)
    store = (await visit(stock_with_dead_letters)).store
    lines = dead_letter_export.lines(store, DeadLetterFilter(), exports.content)
    newest = json.loads(await anext(lines))["dead_letter_id"]
    await store.admin.dead_letters.discard([newest - 2])
    assert [json.loads(line)["dead_letter_id"] async for line in lines] == [newest - 1, newest - 3]
