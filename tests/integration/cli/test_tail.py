"""`pillarbox tail`, as text and as JSON."""

import json
from typing import Any

import psycopg
import pytest

from pillarbox import Outbox
from pillarbox.core.event import Event
from pillarbox.core.outcome import DELIVERED, Dead, Retry
from tests.integration.cli.conftest import Stock
from tests.integration.cli.following import following
from tests.integration.cli.running import pillarbox


def record(stock: Stock, *ids: str) -> None:
    for one in ids:
        stock.record(Event("order.placed", {}, event_id=one, key=f"ORDER:{one}"))


def test_events_are_followed_to_their_outcome(stock: Stock) -> None:
    record(stock, "first")
    with following("tail", "--json", "--since", "1h", "--interval", "50ms", PILLARBOX_STORE=stock.url) as tail:
        seen = json.loads(tail.line())
        assert (seen["change"], seen["event_id"], seen["status"], seen["key"]) == (
            "recorded",
            "first",
            "PENDING",
            "ORDER:first",
        )
        record(stock, "again", "dead")
        moves: list[dict[str, Any]] = [json.loads(tail.line()) for _ in range(2)]
        assert [(move["change"], move["event_id"]) for move in moves] == [("recorded", "again"), ("recorded", "dead")]
        stock.settle(
            first=(DELIVERED, "orders"), again=(Retry(delay=0, error="no"), "orders"), dead=(Dead(error="no"), "mail")
        )
        moves = [json.loads(tail.line()) for _ in range(3)]
        assert sorted((move["change"], move["event_id"], move["destination"]) for move in moves) == [
            ("dead-lettered", "dead", "mail"),
            ("delivered", "first", "orders"),
            ("retried", "again", "orders"),
        ]
        assert [move["at"] for move in moves] == sorted(move["at"] for move in moves)
        assert tail.interrupt() == 130


def test_events_can_be_filtered(shop: Stock) -> None:
    options = ["--since", "1h", "--only", "dead-lettered", "--destination", "mail", "--interval", "50ms"]
    with following("tail", *options, PILLARBOX_STORE=shop.url) as tail:
        words = tail.line().split("\t")
        assert words[1:6] == ["dead-lettered", "order.placed", "dead2", "k", "mail"]
        assert words[6:] == ["1 retry", "timeout of 30 s"]
        assert tail.interrupt() == 130


def test_a_late_commit_is_not_missed(postgres_url: str) -> None:
    stock = Stock(postgres_url)
    record(stock, "old")
    with (
        psycopg.connect(postgres_url) as producer,
        following("tail", "--json", "--since", "1h", "--interval", "50ms", PILLARBOX_STORE=stock.url) as tail,
    ):
        assert json.loads(tail.line())["event_id"] == "old"
        Outbox().record(producer, Event("order.placed", {}, event_id="late"))
        record(stock, "a", "b", "c")
        assert [json.loads(tail.line())["event_id"] for _ in range(3)] == ["a", "b", "c"]
        producer.commit()
        late = json.loads(tail.line())
        assert (late["change"], late["event_id"]) == ("recorded", "late")
        record(stock, "d")
        assert json.loads(tail.line())["event_id"] == "d"


@pytest.mark.parametrize("option", [["--interval", "0s"], ["--interval", "soon"], ["--only", "lost"]])
def test_invalid_options_are_rejected(sqlite_url: str, option: list[str]) -> None:
    assert pillarbox("tail", *option, PILLARBOX_STORE=sqlite_url).returncode == 2


def test_a_store_without_tables_is_an_error(tmp_path_factory: pytest.TempPathFactory) -> None:
    done = pillarbox("tail", cwd=tmp_path_factory.mktemp("bare"))
    assert (done.returncode, "pillarbox schema apply" in done.stderr) == (1, True)
