"""`pillarbox relay`: options, signals and exit codes."""

import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pillarbox import Event, Outbox
from tests.integration.cli.running import environment, pillarbox
from tests.servers.waiting import wait_until

BLOCKING = """
import pathlib

from pillarbox.transports.handlers import Handlers
from tests.servers.waiting import wait_until

handlers = Handlers()

@handlers.on("*", name="slow")
def slow(event, context):
    pathlib.Path("begun").touch()
    wait_until(pathlib.Path("go-on").exists, bound=300, what="the test continues")
    pathlib.Path("done").touch()
"""

STUBBORN = """
import asyncio
from pathlib import Path
from pillarbox.transports.handlers import Handlers

handlers = Handlers()

@handlers.on("*", name="stubborn")
async def stubborn(event, context):
    Path("begun").touch()
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            continue
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A folder with a store that has three events."""
    assert pillarbox("schema", "apply", cwd=tmp_path).returncode == 0
    with closing(sqlite3.connect(tmp_path / "pillarbox.db")) as connection, connection:
        Outbox().record(connection, *(Event("order.placed", {"id": number}, key="one") for number in range(3)))
    (tmp_path / "blocking.py").write_text(BLOCKING)
    return tmp_path


def waiting(shop: Path) -> int:
    with closing(sqlite3.connect(shop / "pillarbox.db")) as connection:
        return int(connection.execute("SELECT count(*) FROM outbox_message").fetchone()[0])


@pytest.fixture
def slow_relay(shop: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A relay with a running handler that returns when the file `go-on` appears."""
    with (shop / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "pillarbox", "relay"],
            env=environment({"PILLARBOX_TRANSPORT": "handlers:blocking:handlers"}),
            cwd=shop,
            stdout=subprocess.DEVNULL,
            stderr=log,
        )
    try:
        wait_until((shop / "begun").exists, bound=90, what="the handler begins")
        yield process
    finally:
        process.kill()
        process.wait()


def test_until_empty_delivers_everything_and_exits(shop: Path) -> None:
    done = pillarbox("relay", "--until-empty", "--name", "till", cwd=shop, PILLARBOX_TRANSPORT="stdout://")
    assert done.returncode == 0, done.stderr
    first, *events = done.stdout.splitlines()
    assert first == "relay till: each event to standard output"
    assert [json.loads(event)["payload"] for event in events] == [{"id": 0}, {"id": 1}, {"id": 2}]
    assert waiting(shop) == 0


@pytest.mark.parametrize("way", ["options", "variables", "file"])
def test_only_events_of_the_time_range_are_delivered(shop: Path, way: str) -> None:
    with closing(sqlite3.connect(shop / "pillarbox.db")) as connection, connection:
        Outbox().record(connection, *(Event("order.placed", {"id": number}) for number in (3, 4, 5)))
        for number in range(6):
            connection.execute(
                "UPDATE outbox_message SET recorded_at = ? WHERE json_extract(CAST(payload AS TEXT), '$.id') = ?",
                (f"2026-01-0{number + 1}T00:00:00.000Z", number),
            )
    after, before = "2026-01-05T00:00:00Z", "2026-01-06T00:00:00Z"
    options = ["--recorded-after", after, "--recorded-before", before] if way == "options" else []
    variables = {"PILLARBOX_RELAY__RECORDED_AFTER": after, "PILLARBOX_RELAY__RECORDED_BEFORE": before}
    if way == "file":
        (shop / "pillarbox.toml").write_text(f'[relay]\nrecorded_after = "{after}"\nrecorded_before = {before}\n')
    done = pillarbox(
        *("relay", "--until-empty", *options),
        cwd=shop,
        PILLARBOX_TRANSPORT="stdout://",
        **(variables if way == "variables" else {}),
    )
    assert done.returncode == 0, done.stderr
    assert [json.loads(event)["payload"] for event in done.stdout.splitlines()[1:]] == [{"id": 4}]
    assert waiting(shop) == 5


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--recorded-after", "1h"], "add --until-empty"),
        (["--until-empty", "--recorded-after", "1h", "--recorded-before", "2h"], "is not before"),
        (["--until-empty", "--recorded-after", "soon"], "'soon' is neither an age"),
        (["--until-empty", "--recorded-after", ""], "'' is neither an age"),
    ],
)
def test_an_invalid_time_range_is_rejected(shop: Path, options: list[str], words: str) -> None:
    done = pillarbox("relay", *options, cwd=shop, PILLARBOX_TRANSPORT="stdout://")
    assert done.returncode == 2, done.stderr
    assert words in done.stderr
    assert waiting(shop) == 3


def test_a_configured_time_range_is_rejected_for_a_running_relay(shop: Path) -> None:
    (shop / "pillarbox.toml").write_text('[relay]\nrecorded_before = "1h"\n')
    done = pillarbox("relay", cwd=shop, PILLARBOX_TRANSPORT="stdout://")
    assert done.returncode == 2, done.stderr
    assert "recorded_before in pillarbox.toml" in done.stderr
    (shop / "pillarbox.toml").write_text('[relay]\nrecorded_before = "soon"\n')
    done = pillarbox("relay", "--until-empty", cwd=shop, PILLARBOX_TRANSPORT="stdout://")
    assert done.returncode == 2, done.stderr
    assert "write a time such as" in done.stderr


def test_the_log_goes_to_standard_error(shop: Path) -> None:
    ways = {"PILLARBOX_TRANSPORT": "stdout://", "PILLARBOX_LOGGING__EVENTS": "true"}
    done = pillarbox("relay", "--until-empty", cwd=shop, **ways)
    for line in (
        "INFO pillarbox.relay: relay started",
        "INFO pillarbox.relay: fetched ",
        "INFO pillarbox.relay.events: delivered event",
        "INFO pillarbox.relay: batch completed: ",
        "INFO pillarbox.relay: drained and stopped",
    ):
        assert line in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_drains_the_relay(
    shop: Path, slow_relay: "subprocess.Popen[bytes]", number: signal.Signals
) -> None:
    slow_relay.send_signal(number)
    wait_until(lambda: "stop requested, draining" in (shop / "log").read_text(), bound=90, what="it drains")
    (shop / "go-on").touch()
    assert slow_relay.wait(120) == 0
    assert (shop / "done").exists()
    assert waiting(shop) == 2


def test_the_second_signal_quits_at_once_with_a_running_handler(
    shop: Path, slow_relay: "subprocess.Popen[bytes]"
) -> None:
    def quit_after_another() -> bool:
        slow_relay.send_signal(signal.SIGTERM)
        return slow_relay.poll() is not None

    wait_until(quit_after_another, bound=90, what="it quits although its handler has not returned")
    assert slow_relay.returncode == -signal.SIGTERM
    assert not (shop / "done").exists()
    assert waiting(shop) == 3


def test_a_handler_that_ignores_cancellation_does_not_block_the_exit(shop: Path) -> None:
    (shop / "stubborn.py").write_text(STUBBORN)
    process = subprocess.Popen(
        [sys.executable, "-m", "pillarbox", "relay"],
        env=environment({"PILLARBOX_TRANSPORT": "handlers:stubborn:handlers"})
        | {"PILLARBOX_RELAY__DRAIN_TIMEOUT": "100ms"},
        cwd=shop,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until((shop / "begun").exists, bound=90, what="the handler begins")
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0
    finally:
        process.kill()
        process.wait()
    assert waiting(shop) == 3


def test_a_disabled_relay_prints_its_setting(shop: Path) -> None:
    done = pillarbox("relay", cwd=shop, PILLARBOX_RELAY__ENABLED="false")
    assert (done.returncode, done.stdout) == (0, "relay: disabled by PILLARBOX_RELAY__ENABLED\n")


def test_a_relay_that_fails_prints_the_reason(shop: Path) -> None:
    (shop / "wedged.py").write_text(BLOCKING.replace("def slow", "async def slow"))
    process = subprocess.Popen(
        [sys.executable, "-m", "pillarbox", "relay"],
        env=environment({"PILLARBOX_TRANSPORT": "handlers:wedged:handlers"})
        | {"PILLARBOX_RELAY__LEASE": "3s", "PILLARBOX_RELAY__SEND_TIMEOUT": "1s"}
        | {"PILLARBOX_RELAY__HEARTBEAT_INTERVAL": "100ms", "PILLARBOX_RELAY__STALL_LIMIT": "300ms"},
        cwd=shop,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            _, said = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode == 1
    assert "pillarbox: the relay ends, because its event loop is blocked: " in said
    assert not (shop / "done").exists()


@pytest.mark.parametrize(
    ("transport", "said"),
    [
        ("", "PILLARBOX_TRANSPORT is not set"),
        ("pigeon://app:canary-password@loft", "no transport for pigeon:"),
        ("canary-password", "no transport for this text"),
        ("handlers:shop", "write handlers:MODULE:OBJECT"),
        ("handlers:nowhere:handlers", "there is no module 'nowhere'"),
        ("handlers:blocking:nothing", "module 'blocking' has no object 'nothing'"),
        ("handlers:blocking:pathlib", "is a module, not Handlers"),
    ],
)
def test_an_invalid_transport_is_a_usage_error_of_one_line(shop: Path, transport: str, said: str) -> None:
    done = pillarbox("relay", cwd=shop, PILLARBOX_TRANSPORT=transport)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert said in done.stderr
    assert "canary-password" not in done.stderr


@pytest.mark.parametrize("failpoint", ["nowhere:1", "after-fetch:0", "after-fetch:often"])
def test_an_unknown_failpoint_is_a_usage_error(shop: Path, failpoint: str) -> None:
    done = pillarbox("relay", cwd=shop, PILLARBOX_TRANSPORT="stdout://", PILLARBOX_FAILPOINT=failpoint)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr


def test_without_tables_the_error_names_the_command(tmp_path: Path) -> None:
    done = pillarbox("relay", cwd=tmp_path, PILLARBOX_TRANSPORT="stdout://")
    assert (done.returncode, done.stderr.count("\n")) == (1, 2), done.stderr
    file, error = done.stderr.splitlines()
    assert str(tmp_path / "pillarbox.db") in file
    assert "pillarbox schema apply" in error


def test_help_has_examples() -> None:
    assert "pillarbox relay --until-empty" in pillarbox("relay", "--help").stdout


def test_json_has_the_start_and_the_remaining_events(shop: Path) -> None:
    done = pillarbox("relay", "--until-empty", "--json", cwd=shop, PILLARBOX_TRANSPORT="stdout://")
    assert done.returncode == 0, done.stderr
    started, *events, ended = map(json.loads, done.stdout.splitlines())
    assert events
    assert started["relay"] == ended["relay"]
    assert (started["name"], started["notes"], ended["remaining"]) == ("", [], 0)
