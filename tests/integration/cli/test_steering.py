"""`pillarbox destinations`, `relays` and `keys`: what operators see and set, on each engine."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from pillarbox import Event
from tests.integration.cli.conftest import Stock
from tests.integration.cli.running import environment, pillarbox
from tests.integration.cli.terminal import at_terminal
from tests.servers.waiting import wait_until


def told(stock: Stock, *arguments: str) -> Any:
    done = pillarbox(*arguments, "--json", PILLARBOX_STORE=stock.url)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def audited(stock: Stock) -> list[tuple[Any, ...]]:
    return stock.ask("SELECT what, subject FROM outbox_audit ORDER BY audit_id")


@contextmanager
def running_relay(stock: Stock, *, name: str = "") -> Iterator[subprocess.Popen[str]]:
    settings = environment({"PILLARBOX_STORE": stock.url, "PILLARBOX_TRANSPORT": "console://"})
    command = [sys.executable, "-m", "pillarbox", "relay", "--name", name]
    with subprocess.Popen(command, env=settings, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_paused_destination_gets_nothing_until_it_is_resumed(stock: Stock) -> None:
    assert told(stock, "destinations", "pause", "console")["done"] == "paused"
    stock.record(Event("order.placed", {}, event_id="held"))
    for expected in ("PENDING", "PUBLISHED"):
        relay = pillarbox("relay", "--until-empty", PILLARBOX_STORE=stock.url, PILLARBOX_TRANSPORT="console://")
        assert relay.returncode == 0, relay.stderr
        assert stock.states("held") == [expected]
        told(stock, "destinations", "resume", "console")
    assert audited(stock)[:2] == [("steer", "console"), ("steer", "console")]


def test_everything_is_paused_at_once(stock: Stock) -> None:
    done = pillarbox("destinations", "pause", PILLARBOX_STORE=stock.url)
    assert (done.returncode, "--yes" in done.stderr) == (2, True)
    told(stock, "destinations", "pause", "--yes")
    assert told(stock, "destinations", "list")["paused"] is True
    assert told(stock, "status")["why"] != ""
    told(stock, "destinations", "resume")
    assert told(stock, "destinations", "list")["paused"] is False


def test_limits_and_breakers_are_set_and_cleared(stock: Stock) -> None:
    told(stock, "destinations", "limit", "orders", "30/m")
    told(stock, "destinations", "breaker", "orders", "open")
    [orders] = told(stock, "destinations", "list")["destinations"]
    assert (orders["rate_limit"], orders["state"], orders["forced"]) == (0.5, "open", True)
    told(stock, "destinations", "limit", "orders", "off")
    told(stock, "destinations", "breaker", "orders", "auto")
    left = told(stock, "destinations", "list")["destinations"]
    assert [(one["rate_limit"], one["forced"]) for one in left] in ([], [(None, False)])


@pytest.mark.parametrize("rate", ["0/s", "fast", "-1/s", "5"])
def test_a_rate_that_is_none_is_refused(shop: Stock, rate: str) -> None:
    done = pillarbox("destinations", "limit", "--", "orders", rate, PILLARBOX_STORE=shop.url)
    assert (done.returncode, "RATE" in done.stderr) == (2, True)


def test_a_relay_that_is_asked_to_drain_ends(stock: Stock) -> None:
    with running_relay(stock, name="one") as process:
        wait_until(lambda: told(stock, "relays", "list")["relays"] != [], bound=30, what="the relay lives")
        [seen] = told(stock, "relays", "list")["relays"]
        assert (seen["name"], seen["draining"]) == ("one", False)
        assert told(stock, "relays", "drain", "one") == {"asked": [seen["id"]]}
        _, errors = process.communicate(timeout=30)
        assert process.returncode == 0, errors
    assert told(stock, "relays", "list") == {"relays": []}
    assert audited(stock) == [("drain", seen["id"])]


def test_nobody_to_drain_is_told(stock: Stock) -> None:
    done = pillarbox("relays", "drain", "nobody", PILLARBOX_STORE=stock.url)
    assert (done.returncode, "nobody" in done.stderr) == (4, True)


def test_a_key_that_stands_still_goes_on_once_its_head_is_buried(with_letters: Stock) -> None:
    [blocked] = told(with_letters, "keys", "blocked")["blocked"]
    assert (blocked["key"], blocked["event_id"], blocked["destination"]) == ("s", "stuck", "orders")
    assert told(with_letters, "keys", "bury", "stuck")["requested"] == ["orders"]
    relay = pillarbox("relay", "--until-empty", PILLARBOX_STORE=with_letters.url, PILLARBOX_TRANSPORT="console://")
    assert relay.returncode == 0, relay.stderr
    assert told(with_letters, "keys", "blocked")["blocked"] == []
    assert told(with_letters, "dead", "show", "stuck")["events"][0]["letter"] is not None
    assert ("bury", "stuck") in audited(with_letters)


def test_what_holds_no_key_up_is_not_buried(with_letters: Stock) -> None:
    done = pillarbox("keys", "bury", "fresh", PILLARBOX_STORE=with_letters.url)
    assert (done.returncode, "keys blocked" in done.stderr) == (4, True)


def test_the_busiest_keys(stock: Stock) -> None:
    stock.record(*(Event("a", {}, key="busy") for _ in range(3)), Event("a", {}, key="calm"))
    assert told(stock, "keys", "hot")["hot"] == [{"key": "busy", "waiting": 3}, {"key": "calm", "waiting": 1}]


def test_tables_for_people(shop: Stock) -> None:
    assert "stuck" in at_terminal("keys", "blocked", PILLARBOX_STORE=shop.url).screen
    assert "no relay is running" in at_terminal("relays", "list", PILLARBOX_STORE=shop.url).screen
    pillarbox("destinations", "pause", "orders", PILLARBOX_STORE=shop.url)
    assert "paused" in at_terminal("destinations", "list", PILLARBOX_STORE=shop.url).screen
