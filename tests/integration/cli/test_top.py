"""`pillarbox top`, on a terminal, in a pipe and as JSON."""

import json
import re

import psycopg
from psycopg import sql

from pillarbox.admin.admin import AdminStore
from pillarbox.core.event import Event
from pillarbox.core.statistics import OutcomeStatistics
from pillarbox.testing.conformance.lane_owner import LONG, Owner
from tests.docs.pages import ROOT
from tests.integration.cli.conftest import Stock
from tests.integration.cli.following import following
from tests.integration.cli.running import pillarbox
from tests.integration.cli.screen import interrupted
from tests.integration.cli.terminal import at_terminal
from tests.servers.postgres import PostgresServer


def at_work(stock: Stock) -> None:
    """A relay that owns every lane and has delivered events."""

    async def work(store: AdminStore) -> None:
        owner = await Owner.of(store, name="till")
        await store.lanes.renew(owner.relay, lease=LONG, breakers={"orders": "closed", "mail": "open"})
        await store.destinations.report("mail", error="refused", next_attempt=5)
        carried = OutcomeStatistics(retried=20)
        for lag in (0.004, 0.004, 0.02):
            for _ in range(10):
                carried.count_delivered(lag)
        await store.statistics.add(owner.relay, {"orders": carried})

    stock.run(work)


def test_a_frame_can_be_printed_as_json(stock: Stock) -> None:
    at_work(stock)
    stock.record(Event("order.placed", {}), Event("order.placed", {}))
    done = pillarbox("top", "--once", "--interval", "50ms", "--json", PILLARBOX_STORE=stock.url)
    assert done.returncode == 0, done.stderr
    [line] = done.stdout.splitlines()
    seen = json.loads(line)
    assert (seen["state"], seen["backlog"], seen["dead_letters"], seen["unowned_lanes"]) == ("degraded", 2, 0, 0)
    assert (seen["recorded_per_second"], seen["backlog_per_second"]) == (0.0, 0.0)
    mail, orders = seen["destinations"]
    assert (mail["name"], mail["state"], mail["last_error"]) == ("mail", "unavailable", "refused")
    assert (mail["delivered_per_second"], mail["dead_lettered_per_second"]) == (None, None)
    assert (orders["delivered_per_second"], orders["retried_per_second"]) == (3.0, 2.0)
    assert (orders["lag_p50_seconds"], orders["lag_p99_seconds"]) == (0.004, 0.025)
    [relay] = seen["relays"]
    assert (relay["name"], relay["lanes"]) == ("till", seen["lanes"])
    page = (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8")
    assert [key for key in seen if f'"{key}"' not in page] == []
    section = page[page.index("## `pillarbox top`") :].split("\n## ")[0]
    assert [key for key in (*orders, *relay) if f"`{key}`" not in section] == []


def test_during_an_outage_the_last_frame_stays(postgres_server: PostgresServer, postgres_url: str) -> None:
    database = postgres_url.rpartition("/")[2]
    Stock(postgres_url).record(Event("order.placed", {}))
    with (
        psycopg.connect(postgres_server.url("postgres"), autocommit=True) as admin,
        following("top", "--interval", "50ms", "--json", PILLARBOX_STORE=postgres_url) as top,
    ):
        assert json.loads(top.line())["store_error"] is None
        admin.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false").format(sql.Identifier(database)))
        admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [database])
        while (seen := json.loads(top.line()))["store_error"] is None:
            pass
        assert seen["backlog"] == 1
        assert " failed: " in seen["store_error"]
        admin.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS true").format(sql.Identifier(database)))
        while json.loads(top.line())["store_error"] is not None:
            pass
        assert top.interrupt() == 130


def test_each_line_has_the_rates_since_the_previous_one(stock: Stock) -> None:
    with following("top", "--interval", "50ms", "--json", PILLARBOX_STORE=stock.url) as top:
        first = json.loads(top.line())
        assert (first["recorded_per_second"], first["backlog"]) == (None, 0)
        stock.record(Event("order.placed", {}))
        seen = json.loads(top.line())
        while seen["backlog"] == 0:
            seen = json.loads(top.line())
        assert seen["backlog_per_second"] > 0
        stock.record(Event("order.placed", {}))
        rates = [seen["recorded_per_second"]]
        while seen["backlog"] < 2 or not any(rates):
            seen = json.loads(top.line())
            rates.append(seen["recorded_per_second"])
        assert seen["backlog"] == 2
        assert top.interrupt() == 130


def test_a_frame_in_a_pipe(sqlite_url: str) -> None:
    stock = Stock(sqlite_url)
    at_work(stock)
    stock.record(Event("order.placed", {}))
    lines = pillarbox("top", "--once", "--interval", "50ms", PILLARBOX_STORE=sqlite_url).stdout.splitlines()
    assert lines[0] == "degraded: mail is unavailable: refused."
    assert lines[1].startswith("1 pending, the oldest for ")
    assert lines[1].endswith("0 dead, 0.0 recorded/s, backlog +0.0/s, 1 of 1 lanes owned")
    assert lines[3].split("\t") == ["mail", "unavailable", *["\N{EN DASH}"] * 5, "refused"]
    assert lines[4].split("\t") == ["orders", "available", "3.0", "2.0", "0.0", "3.75 ms", "24.55 ms", ""]
    assert lines[6].split("\t")[0] == "till"


def test_a_terminal_gets_tables(sqlite_url: str) -> None:
    stock = Stock(sqlite_url)
    at_work(stock)
    shown = at_terminal("top", "--once", "--interval", "50ms", PILLARBOX_STORE=sqlite_url)
    assert (shown.returncode, "─" in shown.screen, "\x1b[33m" in shown.screen) == (0, True, True), shown.screen


def test_a_narrow_terminal_truncates_no_word(sqlite_url: str) -> None:
    at_work(Stock(sqlite_url))
    screen = at_terminal("top", "--once", "--interval", "50ms", PILLARBOX_STORE=sqlite_url, COLUMNS="60").screen
    assert "…" not in screen, screen
    for word in ("destination", "available", "delivered/s", "till"):
        assert word in screen


def test_a_short_terminal_still_shows_relays(sqlite_url: str) -> None:
    stock = Stock(sqlite_url)
    at_work(stock)

    async def many(store: AdminStore) -> None:
        await store.statistics.add(
            "r",
            {f"place-{number:02}": OutcomeStatistics(retried=1) for number in range(30)} | {"": OutcomeStatistics()},
        )

    stock.run(many)
    shown = interrupted("top", "--interval", "50ms", shown="till", PILLARBOX_STORE=sqlite_url, LINES="16")
    assert "(no route yet)" in shown.screen
    assert "place-29" not in shown.screen
    assert re.search(r"and \d+ more", shown.screen)


def test_an_interrupt_restores_the_screen(sqlite_url: str) -> None:
    shown = interrupted("top", "--interval", "50ms", shown="stopped", PILLARBOX_STORE=sqlite_url)
    entered, left = shown.screen.index("\x1b[?1049h"), shown.screen.index("\x1b[?1049l")
    assert (shown.returncode, entered < left) == (130, True), shown.screen


def test_an_interval_of_zero_is_rejected(sqlite_url: str) -> None:
    assert pillarbox("top", "--interval", "0s", PILLARBOX_STORE=sqlite_url).returncode == 2
