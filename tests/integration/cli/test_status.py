"""`pillarbox status`, as text, as JSON and with limits."""

import json
from pathlib import Path

import pytest

from pillarbox.admin.admin import AdminStore
from pillarbox.core.event import Event
from pillarbox.testing.conformance.events import at
from pillarbox.testing.conformance.lane_owner import LONG, Owner
from tests.integration.cli.conftest import Stock
from tests.integration.cli.running import pillarbox
from tests.integration.cli.terminal import at_terminal
from tests.servers.ports import free_port


@pytest.fixture
def with_two_events(stock: Stock) -> Stock:
    stock.record(Event("order.placed", {}), Event("order.placed", {}))
    return stock


def relay(stock: Stock, **breakers: str) -> None:
    """A running relay that owns every lane."""

    async def work(store: AdminStore) -> None:
        owner = await Owner.of(store, name="till")
        await store.lanes.renew(owner.relay, lease=LONG, breakers=breakers)
        for name, state in breakers.items():
            await store.destinations.report(name, error="refused" if state == "open" else None, next_attempt=None)

    stock.run(work)


def test_status_prints_json(with_two_events: Stock) -> None:
    done = pillarbox("status", "--json", PILLARBOX_STORE=with_two_events.url)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert (seen["backlog"], seen["exact"], seen["dead_letters"], seen["relays"]) == (2, True, 0, [])
    assert seen["oldest_seconds"] >= 0
    assert (seen["state"], "pillarbox relay" in seen["reason"], seen["destinations"]) == ("stopped", True, [])
    assert seen["lanes"][0] == {"lane": 0, "owner": None, "epoch": 0, "crashes": 0}


def test_the_first_line_is_stopped_without_a_relay(with_two_events: Stock) -> None:
    done = pillarbox("status", PILLARBOX_STORE=with_two_events.url)
    [first] = done.stdout.splitlines()
    assert first.startswith(
        "stopped: no relay is running: start one with `pillarbox relay`. 2 pending, the oldest for "
    )


def test_the_first_line_is_flowing(with_two_events: Stock) -> None:
    relay(with_two_events, orders="closed")
    first, *rest = pillarbox("status", PILLARBOX_STORE=with_two_events.url).stdout.splitlines()
    assert first.startswith("flowing: 2 pending, the oldest for ")
    assert [line.split("\t")[0] for line in rest] == ["destination", "orders", "relay", "till"]


def test_the_first_line_names_an_unavailable_destination(with_two_events: Stock) -> None:
    relay(with_two_events, orders="open", mail="closed")
    done = pillarbox("status", PILLARBOX_STORE=with_two_events.url)
    first, *rest = done.stdout.splitlines()
    assert first.startswith("degraded: orders is unavailable: refused. 2 pending, the oldest for ")
    assert "orders\tunavailable\t\trefused" in rest
    destinations = json.loads(pillarbox("status", "--json", PILLARBOX_STORE=with_two_events.url).stdout)["destinations"]
    assert destinations[1] == {
        "name": "orders",
        "state": "unavailable",
        "breaker": "open",
        "forced": False,
        "last_error": "refused",
        "rate_limit": None,
    }


def test_the_first_line_has_a_colour_on_a_terminal(sqlite_url: str) -> None:
    shown = at_terminal("status", PILLARBOX_STORE=sqlite_url)
    assert (shown.returncode, shown.screen[:5]) == (0, "\x1b[31m")
    plain = at_terminal("status", PILLARBOX_STORE=sqlite_url, NO_COLOR="1")
    assert plain.screen.startswith("stopped: ")


def test_an_age_beyond_the_limit_fails(with_two_events: Stock) -> None:
    late = pillarbox("status", "--max-age", "0s", "--json", PILLARBOX_STORE=with_two_events.url)
    assert (late.returncode, json.loads(late.stdout)["exceeded"], late.stderr.count("\n")) == (3, True, 1)
    fine = pillarbox("status", "--max-age", "1h", "--json", PILLARBOX_STORE=with_two_events.url)
    assert (fine.returncode, json.loads(fine.stdout)["exceeded"]) == (0, False)


def test_any_state_but_flowing_fails_on_request(with_two_events: Stock) -> None:
    stopped = pillarbox("status", "--check", "--json", PILLARBOX_STORE=with_two_events.url)
    assert (stopped.returncode, json.loads(stopped.stdout)["exceeded"]) == (3, True)
    assert stopped.stderr.startswith("pillarbox: stopped: no relay is running")
    relay(with_two_events, orders="closed")
    flowing = pillarbox("status", "--check", PILLARBOX_STORE=with_two_events.url)
    assert (flowing.returncode, flowing.stderr) == (0, "")


def test_a_scheduled_event_does_not_fail(stock: Stock) -> None:
    stock.record(Event("order.placed", {}, available_at=at(3600)))
    done = pillarbox("status", "--max-age", "0s", "--json", PILLARBOX_STORE=stock.url)
    seen = json.loads(done.stdout)
    assert (done.returncode, seen["backlog"], seen["oldest_seconds"]) == (0, 1, None)


def test_without_tables_the_error_names_the_command(tmp_path: Path) -> None:
    done = pillarbox("status", cwd=tmp_path, PILLARBOX_STORE="sqlite:///pillarbox.db")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert "pillarbox schema apply" in done.stderr


@pytest.mark.parametrize("command", [["status"], ["events", "list"], ["audit", "list"], ["relay", "--until-empty"]])
def test_a_missing_file_is_named_and_not_created(tmp_path: Path, command: list[str]) -> None:
    done = pillarbox(*command, cwd=tmp_path, PILLARBOX_STORE="sqlite:///typo.db", PILLARBOX_TRANSPORT="stdout://")
    assert done.returncode == 1
    assert f"there is no file {tmp_path / 'typo.db'}" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_error_of_a_command_promises_no_retry() -> None:
    done = pillarbox("status", PILLARBOX_STORE=f"postgresql://app@127.0.0.1:{free_port()}/shop")
    assert (done.returncode, " failed: " in done.stderr, "retrying" in done.stderr) == (1, True, False)
