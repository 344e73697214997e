"""`pillarbox drill` runs on real servers, reports, refuses what exists, and removes what it created."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from pillarbox.core.errors import CommandError
from pillarbox.ops.drill import run
from pillarbox.ops.drill.options import DrillOptions
from pillarbox.ops.drill.target import DrillTarget, SettingsSource
from pillarbox.plugins import StoreOptions
from pillarbox.schemes import store_plugin
from tests.integration.cli.conftest import Stock
from tests.integration.cli.running import environment, pillarbox
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.waiting import wait_until

OWN = """
SELECT relname::text FROM pg_class WHERE relname LIKE 'drill\\_%'
UNION ALL SELECT proname::text FROM pg_proc WHERE proname LIKE 'drill\\_%'
"""
QUEUES = 'length([Q || Q <- rabbit_amqqueue:list(), re:run(element(4, element(2, Q)), <<"^drill_">>) =/= nomatch])'
EXCHANGES = (
    'length([X || X <- rabbit_exchange:list(<<"/">>), re:run(element(4, element(2, X)), <<"^drill_">>) =/= nomatch])'
)


def left(url: str) -> list[str]:
    with psycopg.connect(url) as database:
        return [str(row[0]) for row in database.execute(OWN.encode())]


def test_hooks_run_and_a_run_without_effect_is_void(shop: Stock, tmp_path: Path) -> None:
    file = Path(shop.url.removeprefix("sqlite:///"))
    before = file.read_bytes()
    done = pillarbox(
        *("drill", "--seconds", "2", "--fault", "cut-database", "--yes", "--json", "--seed", "16"),
        *("--cut-database", f"touch {tmp_path}/cut", "--restore-database", f"touch {tmp_path}/restored"),
        *("--report", f"{tmp_path}/drill.json", "--html", f"{tmp_path}/drill.html"),
        PILLARBOX_STORE=shop.url,
    )
    assert done.returncode == 5, done.stderr
    assert "--seed 16" in done.stderr
    reported = json.loads(done.stdout)
    assert (reported["conclusion"], reported["seed"], reported["violations"]) == ("void", 16, [])
    assert json.loads((tmp_path / "drill.json").read_text()) == reported
    assert (tmp_path / "drill.html").read_text().startswith("<!doctype html>")
    assert (tmp_path / "cut").exists()
    assert (tmp_path / "restored").exists()
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir() if "drill_" in path.name] == []


@pytest.mark.parametrize(
    ("signals", "code"),
    [([signal.SIGINT], 0), ([signal.SIGINT] * 2, 130), ([signal.SIGINT] * 3, 130), ([signal.SIGHUP], 130)],
)
def test_an_interrupted_drill_removes_tables_and_queues(
    postgres_url: str, rabbitmq_server: RabbitMQServer, tmp_path: Path, signals: list[signal.Signals], code: int
) -> None:
    variables = {"PILLARBOX_STORE": postgres_url, "PILLARBOX_TRANSPORT": rabbitmq_server.url()}
    command = [sys.executable, "-m", "pillarbox", "drill", "--seconds", "600", "--fault", "kill", "--yes"]
    output = tmp_path / "output.txt"
    with output.open("wb") as file:
        process = subprocess.Popen(command, env=environment(variables), stdout=file, stderr=file)
    try:
        wait_until(lambda: "in flight" in output.read_text(), bound=60, what="a relay is killed")
        assert left(postgres_url)
        first, *others = signals
        process.send_signal(first)
        if others:
            wait_until(lambda: "a second Ctrl-C" in output.read_text(), bound=60, what="it ends the load")
        for number in others:
            process.send_signal(number)
        assert process.wait(120) == code, output.read_text()
        assert "Traceback" not in output.read_text()
    finally:
        process.kill()
        process.wait()
    assert left(postgres_url) == []
    assert (int(rabbitmq_server.evaluate(QUEUES)), int(rabbitmq_server.evaluate(EXCHANGES))) == (0, 0)


def test_a_report_that_cannot_be_written_does_not_hide_the_result(shop: Stock, tmp_path: Path) -> None:
    done = pillarbox(
        *("drill", "--seconds", "0.01", "--yes", "--json"),
        *("--report", "/dev/full", "--html", f"{tmp_path}/drill.html"),
        PILLARBOX_STORE=shop.url,
    )
    assert done.returncode == 1
    assert json.loads(done.stdout)["conclusion"] == "void"
    assert "/dev/full could not be written: No space left on device" in done.stderr
    assert (tmp_path / "drill.html").read_text().startswith("<!doctype html>")


@pytest.mark.parametrize("command", [("drill", "--seconds", "0.01", "--yes"), ("bench", "--seconds", "1")])
def test_a_schema_that_did_not_exist_is_removed(postgres_url: str, command: tuple[str, ...]) -> None:
    done = pillarbox(*command, PILLARBOX_STORE=postgres_url, PILLARBOX_STORE__SCHEMA="drilled")
    assert done.returncode in (0, 5), done.stderr
    with psycopg.connect(postgres_url) as database:
        assert database.execute("SELECT to_regnamespace('drilled')").fetchall() == [(None,)]


async def test_a_new_schema_stays_if_something_else_was_created_in_it(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PILLARBOX_STORE", postgres_url)
    monkeypatch.setenv("PILLARBOX_STORE__SCHEMA", "shared")
    scratch = DrillTarget.of(SettingsSource().load(), name="drill_shared").store
    assert await scratch.existing() == []
    with psycopg.connect(postgres_url, autocommit=True) as database:
        database.execute("CREATE SCHEMA shared CREATE TABLE precious (id int)")
        await scratch.drop()
        assert database.execute("SELECT count(*) FROM shared.precious").fetchall() == [(0,)]


async def test_files_of_relays_are_removed_whatever_the_store_is_called(tmp_path: Path) -> None:
    scratch = store_plugin("sqlite").scratch(f"sqlite:///{tmp_path}/shop[1].db", StoreOptions(), "drill_x")
    (tmp_path / "shop[1].db.drill_x-relay-1").touch()
    (tmp_path / "shop1.db.drill_x-relay-1").touch()
    assert len(await scratch.existing()) == 1
    await scratch.drop()
    assert os.listdir(tmp_path) == ["shop1.db.drill_x-relay-1"]


@pytest.mark.parametrize("option", [(), ("--json",)])
def test_without_a_terminal_it_lists_what_it_would_create_and_needs_yes(shop: Stock, option: tuple[str, ...]) -> None:
    done = pillarbox("drill", *option, PILLARBOX_STORE=shop.url)
    assert (done.returncode, done.stdout) == (2, "")
    assert "The drill creates, and removes at the end:\n  file /" in done.stderr
    assert "pass --yes" in done.stderr


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (("--cut-broker", "x"), "--cut-broker and --restore-broker are used together; give both"),
        (("--relays", "1"), "--relays is 1: a drill needs at least 2"),
        (("--seconds", "0"), "--seconds is 0: it must be a number above zero"),
        (("--seconds", "nan"), "--seconds is nan: it must be a number above zero"),
        (("--rate", "inf"), "--rate is inf: it must be a number above zero"),
        (("--html", "/nowhere/drill.html"), "/nowhere/drill.html cannot be written"),
        (("--interval", "-1"), "--interval is -1: it must be zero or a number above it"),
        (("--transport", "kafka"), "--transport kafka: no broker transport has this name"),
        (("--fault", "unroutable"), "--fault: none of them is possible here; use kill, freeze"),
    ],
)
def test_wrong_options_are_a_usage_error(shop: Stock, option: tuple[str, ...], message: str) -> None:
    done = pillarbox("drill", "--yes", *option, PILLARBOX_STORE=shop.url)
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr


def drill_named(name: str, folder: Path) -> run.DrillRun:
    source = SettingsSource()
    target = DrillTarget.of(source.load(), name=name)
    return run.DrillRun(source, target, DrillOptions(seed=1), folder=folder, show=lambda _: None)


def test_tables_that_exist_are_not_touched(postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PILLARBOX_STORE", postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as database:
        database.execute("CREATE TABLE drill_taken_precious (id int)")
        with pytest.raises(CommandError, match="table drill_taken_precious exists already"):
            asyncio.run(drill_named("drill_taken", tmp_path).run())
        assert left(postgres_url) == ["drill_taken_precious"]
        database.execute("DROP TABLE drill_taken_precious")


def test_queues_that_exist_are_not_touched(
    shop: Stock, rabbitmq_server: RabbitMQServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PILLARBOX_STORE", shop.url)
    monkeypatch.setenv("PILLARBOX_TRANSPORT", rabbitmq_server.url())

    async def occupied() -> None:
        drill = drill_named("drill_taken", tmp_path)
        queue = DrillTarget.of(SettingsSource().load(), name="drill_taken").open_queue()
        assert queue is not None
        await queue.create()
        try:
            with pytest.raises(CommandError, match=r"queue drill_taken\.audit exists already"):
                await drill.run()
            assert "queue drill_taken.audit" in await queue.existing()
        finally:
            await queue.drop()
            await queue.aclose()

    asyncio.run(occupied())
