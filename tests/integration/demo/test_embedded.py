"""The demo without a server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.integration.demo.running import QUICK, assert_everything_arrived, demo, environment, json_result

Finished = tuple[Path, "subprocess.CompletedProcess[str]"]
"""The folder of a demo that has ended, and its output."""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """One demo for all tests that only check its result."""
    folder = tmp_path_factory.mktemp("demo")
    return folder, demo(folder, *QUICK, "--json")


def test_committed_events_arrive_and_rolled_back_events_do_not(finished: Finished) -> None:
    _, done = finished
    found = json_result(done)
    assert done.returncode == 0
    assert_everything_arrived(found)
    assert found["committed"] >= 300
    assert found["rolled_back"] > 0
    assert found["kills"] == 0
    assert [receiver["receiver"] for receiver in found["receivers"]] == ["mailer", "warehouse", "search"]


def test_the_mailer_fails_at_times_and_the_relay_retries(finished: Finished) -> None:
    _, done = finished
    mailer, *others = json_result(done)["receivers"]
    assert mailer["retried"] > 0
    assert [other["retried"] for other in others] == [0, 0]


def test_a_killed_relay_loses_nothing_and_duplicates_at_most_what_was_in_flight(tmp_path: Path) -> None:
    done = demo(tmp_path, *QUICK, "--kill", "--json")
    found = json_result(done)
    assert done.returncode == 0
    assert_everything_arrived(found)
    assert found["kills"] == 1
    assert found["epoch"] >= 2  # its successor took the lanes over
    assert found["duplicates"] <= found["max_duplicates"] == 200 * (found["epoch"] - 1)


@pytest.mark.parametrize(
    ("inject", "message"),
    [
        ("loss", "never reached mailer"),
        ("reordering", "reached mailer out of order"),
        ("phantom", "never committed, but reached mailer"),
        ("duplicates", "duplicates, but at most 0 possible"),
    ],
)
def test_an_injected_fault_is_detected(tmp_path: Path, inject: str, message: str) -> None:
    done = demo(tmp_path, *QUICK, "--inject", inject, "--json")
    assert done.returncode == 1
    assert any(message in failure for failure in json_result(done)["failures"])


def test_the_demo_leaves_no_files(finished: Finished) -> None:
    folder, done = finished
    assert done.returncode == 0
    assert list(folder.iterdir()) == []


def test_keep_keeps_orders_ledger_and_logs(tmp_path: Path) -> None:
    done = demo(tmp_path, *QUICK, "--keep", "here")
    assert done.returncode == 0
    assert "The data is in here" in done.stderr
    kept = {path.name for path in (tmp_path / "here").iterdir()}
    assert {"shop.db", "ledger.txt", "relay_process.log"} <= kept


def test_keep_rejects_a_folder_that_is_not_empty(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").touch()
    done = demo(tmp_path, *QUICK, "--keep", ".")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "not empty" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--store", "mysql://app:canary-password@here"], "--store postgresql://"),
        (["--transport", "kafka://app:canary-password@here"], "--transport amqp://"),
        (["--seconds", "-1"], "--seconds is -1"),
    ],
)
def test_unsupported_arguments_are_a_usage_error_in_one_line(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    done = demo(tmp_path, *arguments)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert message in done.stderr
    assert "canary-password" not in done.stderr


def test_a_relay_that_cannot_start_is_reported_with_its_error(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\nif any('relay_process' in word for word in sys.orig_argv):\n    sys.exit('no relay today')\n"
    )
    done = demo(tmp_path, *QUICK, PYTHONPATH=os.pathsep.join([str(tmp_path), *sys.path]))
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert "relay_process ended with 1: " in done.stderr
    assert "no relay today" in done.stderr


def test_the_console_is_served_and_shows_the_demo(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pillarbox", "demo", "--events", "100000"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(tmp_path), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            title, line = process.stdout.readline(), process.stdout.readline()
            address = line.removeprefix("console: ").strip()
            assert address.startswith("http://127.0.0.1:"), title + line
            assert httpx.get(f"{address}api/v1/relays").json()["relays"][0]["lanes"] > 0
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=120)
    assert process.returncode == 0
