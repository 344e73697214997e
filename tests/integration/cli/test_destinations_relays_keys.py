"""`pillarbox destinations`, `relays` and `keys`: what operators see and set, on each engine."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pillarbox import Event
from pillarbox import __version__ as pillarbox_version
from pillarbox.core.statistics import OutcomeStatistics
from tests.integration.cli.conftest import Stock
from tests.integration.cli.running import environment, pillarbox
from tests.integration.cli.terminal import at_terminal
from tests.servers.waiting import wait_until


def json_of(stock: Stock, *arguments: str) -> Any:
    done = pillarbox(*arguments, "--json", PILLARBOX_STORE=stock.url)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def audited(stock: Stock) -> list[tuple[Any, ...]]:
    return stock.ask("SELECT what, subject FROM outbox_audit ORDER BY audit_id")


@contextmanager
def running_relay(stock: Stock, *, name: str = "") -> Iterator[subprocess.Popen[str]]:
    settings = environment({"PILLARBOX_STORE": stock.url, "PILLARBOX_TRANSPORT": "stdout://"})
    command = [sys.executable, "-m", "pillarbox", "relay", "--name", name]
    with subprocess.Popen(command, env=settings, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_paused_destination_receives_nothing_until_it_is_resumed(stock: Stock) -> None:
    assert json_of(stock, "destinations", "pause", "stdout", "--force")["done"] == "paused"
    stock.record(Event("order.placed", {}, event_id="held"))
    for expected in ("PENDING", "PUBLISHED"):
        relay = pillarbox("relay", "--until-empty", PILLARBOX_STORE=stock.url, PILLARBOX_TRANSPORT="stdout://")
        assert relay.returncode == 0, relay.stderr
        assert stock.states("held") == [expected]
        json_of(stock, "destinations", "resume", "stdout")
    assert audited(stock)[:2] == [("override", "stdout"), ("override", "stdout")]


def test_all_destinations_can_be_paused_at_once(stock: Stock) -> None:
    done = pillarbox("destinations", "pause", PILLARBOX_STORE=stock.url)
    assert (done.returncode, "--yes" in done.stderr, "--dry-run" in done.stderr) == (2, True, False)
    json_of(stock, "destinations", "pause", "--yes")
    assert json_of(stock, "destinations", "list")["paused"] is True
    assert json_of(stock, "status")["reason"] != ""
    json_of(stock, "destinations", "resume")
    assert json_of(stock, "destinations", "list")["paused"] is False


def test_limits_and_breakers_are_set_and_cleared(stock: Stock) -> None:
    json_of(stock, "destinations", "limit", "orders", "30/m", "--force")
    json_of(stock, "destinations", "breaker", "orders", "open")
    [orders] = json_of(stock, "destinations", "list")["destinations"]
    assert (orders["rate_limit"], orders["state"], orders["breaker"]) == (0.5, "unavailable", "open")
    json_of(stock, "destinations", "limit", "orders", "off")
    json_of(stock, "destinations", "breaker", "orders", "auto")
    left = json_of(stock, "destinations", "list")["destinations"]
    assert [(one["rate_limit"], one["forced"]) for one in left] in ([], [(None, False)])


@pytest.mark.parametrize("name", ["*", "", "or\nders", "o" * 256])
@pytest.mark.parametrize(
    "words",
    [("pause",), ("resume",), ("limit", "1/h"), ("breaker", "open")],
    ids=lambda words: words[0],
)
def test_an_invalid_name_is_rejected_even_with_force(shop: Stock, words: tuple[str, ...], name: str) -> None:
    verb, *rest = words
    done = pillarbox("destinations", verb, name, *rest, "--force", PILLARBOX_STORE=shop.url)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1), done.stderr
    assert shop.ask("SELECT * FROM outbox_destination") == []


@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_one_invalid_name_of_several_changes_nothing(shop: Stock, verb: str) -> None:
    done = pillarbox("destinations", verb, "orders", "ordres", PILLARBOX_STORE=shop.url)
    assert done.returncode == 4
    assert shop.ask("SELECT * FROM outbox_destination") == []


def test_an_unknown_name_is_rejected_with_the_known_ones(with_dead_letters: Stock) -> None:
    # Relays count events without a route under no name.
    with_dead_letters.run(lambda store: store.statistics.add("relay-1", {"": OutcomeStatistics(retried=1)}))
    done = pillarbox("destinations", "pause", "ordres", PILLARBOX_STORE=with_dead_letters.url)
    assert (done.returncode, done.stderr) == (
        4,
        "pillarbox: there is no destination 'ordres'; did you mean 'orders'? there are mail, orders; "
        "--force accepts a destination that does not exist yet\n",
    )
    assert audited(with_dead_letters) == []
    json_of(with_dead_letters, "destinations", "pause", "ordres", "--force")
    json_of(with_dead_letters, "destinations", "resume", "ordres")
    assert audited(with_dead_letters) == [("override", "ordres")] * 2


def test_a_configured_destination_is_known_before_its_first_event(stock: Stock, tmp_path: Path) -> None:
    (tmp_path / "pillarbox.toml").write_text('[transports.out]\nurl = "stdout://"\n[destinations.mailer]\n')
    done = pillarbox("destinations", "limit", "mailer", "1/s", cwd=tmp_path, PILLARBOX_STORE=stock.url)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("rate", ["0/s", "fast", "-1/s", "5"])
def test_an_invalid_rate_is_rejected(shop: Stock, rate: str) -> None:
    done = pillarbox("destinations", "limit", "--", "orders", rate, PILLARBOX_STORE=shop.url)
    assert (done.returncode, "RATE" in done.stderr) == (2, True)


def test_a_relay_can_be_drained(stock: Stock) -> None:
    with running_relay(stock, name="one") as process:
        wait_until(lambda: json_of(stock, "relays", "list")["relays"] != [], bound=90, what="the relay has joined")
        [seen] = json_of(stock, "relays", "list")["relays"]
        assert seen["version"] == pillarbox_version
        assert (seen["name"], seen["draining"]) == ("one", False)
        assert json_of(stock, "relays", "drain", "one") == {"requested": [seen["id"]]}
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    assert json_of(stock, "relays", "list") == {"relays": []}
    assert audited(stock) == [("drain", seen["id"])]


def test_draining_without_a_relay_is_an_error(stock: Stock) -> None:
    done = pillarbox("relays", "drain", "unknown", PILLARBOX_STORE=stock.url)
    assert (done.returncode, "unknown" in done.stderr) == (4, True)


@pytest.mark.parametrize("name", ["*", "", "on\ne"])
def test_an_invalid_relay_name_drains_nothing(shop: Stock, name: str) -> None:
    done = pillarbox("relays", "drain", name, PILLARBOX_STORE=shop.url)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr


def test_draining_all_relays_must_be_explicit(shop: Stock) -> None:
    done = pillarbox("relays", "drain", PILLARBOX_STORE=shop.url)
    assert (done.returncode, "--yes" in done.stderr, "--dry-run" in done.stderr) == (2, True, False)


def test_a_blocked_key_continues_once_its_first_event_is_dead_lettered(with_dead_letters: Stock) -> None:
    [blocked] = json_of(with_dead_letters, "keys", "blocked")["blocked"]
    assert (blocked["key"], blocked["event_id"], blocked["destination"]) == ("s", "stuck", "orders")
    assert json_of(with_dead_letters, "keys", "skip", "stuck")["requested"] == 1
    relay = pillarbox("relay", "--until-empty", PILLARBOX_STORE=with_dead_letters.url, PILLARBOX_TRANSPORT="stdout://")
    assert relay.returncode == 0, relay.stderr
    assert json_of(with_dead_letters, "keys", "blocked")["blocked"] == []
    assert json_of(with_dead_letters, "dead", "show", "stuck")["events"][0]["dead_letter_id"] is not None
    assert ("dead_letter", "stuck") in audited(with_dead_letters)


def test_a_key_waiting_for_a_retry_is_listed_and_its_first_event_can_be_dead_lettered(stock: Stock) -> None:
    stock.record(*(Event("order.placed", {}, event_id=name, key="k") for name in ("head", "second", "third")))
    stock.delay_key("head", "second", "third", to="stdout")
    [blocked] = json_of(stock, "keys", "blocked")["blocked"]
    assert (blocked["key"], blocked["event_id"], blocked["waiting"], blocked["error"]) == ("k", "head", 2, "refused")
    assert blocked["next_retry_at"] > blocked["since"]
    shown = pillarbox("keys", "blocked", PILLARBOX_STORE=stock.url).stdout
    assert re.search(r"\tits retry in \d+ min\t", shown)
    [found] = [one for one in examined(stock) if one["check"] == "symptoms.blocked"]
    assert found["result"] == "pass"
    assert json_of(stock, "keys", "skip", "head")["requested"] == 1
    relay = pillarbox("relay", "--until-empty", PILLARBOX_STORE=stock.url, PILLARBOX_TRANSPORT="stdout://")
    assert relay.returncode == 0, relay.stderr
    assert json_of(stock, "keys", "blocked")["blocked"] == []
    assert stock.states("head", "second", "third") == ["FAILED", "PUBLISHED", "PUBLISHED"]


def examined(stock: Stock) -> list[dict[str, Any]]:
    done = pillarbox("doctor", "--json", PILLARBOX_STORE=stock.url, PILLARBOX_TRANSPORT="stdout://")
    findings: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    return findings


def test_an_event_that_blocks_no_key_is_not_dead_lettered(with_dead_letters: Stock) -> None:
    done = pillarbox("keys", "skip", "fresh", PILLARBOX_STORE=with_dead_letters.url)
    assert (done.returncode, "keys blocked" in done.stderr) == (4, True)


def test_the_busiest_keys_are_listed(stock: Stock) -> None:
    stock.record(*(Event("a", {}, key="busy") for _ in range(3)), Event("a", {}, key="calm"))
    assert json_of(stock, "keys", "busiest")["busiest"] == [
        {"key": "busy", "pending": 3},
        {"key": "calm", "pending": 1},
    ]


def test_a_hot_key_gets_advice(stock: Stock) -> None:
    stock.record(*(Event("a", {}, key="busy") for _ in range(1_000)))
    broker = "amqp://127.0.0.1/"
    done = pillarbox("keys", "busiest", PILLARBOX_STORE=stock.url, PILLARBOX_TRANSPORT=broker)
    assert "busy" in done.stdout
    assert "busy: each of its events is sent once the previous one is confirmed" in done.stderr
    asked = pillarbox("keys", "busiest", "--json", PILLARBOX_STORE=stock.url, PILLARBOX_TRANSPORT=broker)
    assert 'ordering = "pipelined" in its [destinations.NAME]' in json.loads(asked.stdout)["advice"]
    handled = pillarbox("keys", "busiest", "--json", PILLARBOX_STORE=stock.url, PILLARBOX_TRANSPORT="stdout://")
    assert json.loads(handled.stdout)["advice"] is None


def test_lists_are_printed_as_tables(shop: Stock) -> None:
    assert "stuck" in at_terminal("keys", "blocked", PILLARBOX_STORE=shop.url).screen
    assert "no relay is running" in at_terminal("relays", "list", PILLARBOX_STORE=shop.url).screen
    pillarbox("destinations", "pause", "orders", PILLARBOX_STORE=shop.url)
    pillarbox("destinations", "limit", "orders", "30/m", PILLARBOX_STORE=shop.url)
    shown = at_terminal("destinations", "list", PILLARBOX_STORE=shop.url).screen
    assert "paused" in shown
    assert "30/m" in shown
