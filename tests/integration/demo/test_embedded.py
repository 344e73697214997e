"""The demo without any server: it works, it survives a kill, and its verdict can fail."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.integration.demo.running import QUICK, assert_everything_arrived, demo, environment, verdict

Played = tuple[Path, "subprocess.CompletedProcess[str]"]
"""The folder that a demo was played in, and how it ended."""


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """One demo for all tests that only look at what became of it."""
    folder = tmp_path_factory.mktemp("demo")
    return folder, demo(folder, *QUICK, "--json")


def test_what_was_committed_arrives_and_what_was_rolled_back_does_not(played: Played) -> None:
    _, done = played
    found = verdict(done)
    assert done.returncode == 0
    assert_everything_arrived(found)
    assert found["committed"] >= 300
    assert found["rolled_back"] > 0
    assert found["kills"] == 0
    assert [receiver["receiver"] for receiver in found["receivers"]] == ["mailer", "warehouse", "search"]


def test_the_mailer_fails_now_and_then_and_is_called_again(played: Played) -> None:
    _, done = played
    mailer, *others = verdict(done)["receivers"]
    assert mailer["retried"] > 0
    assert [other["retried"] for other in others] == [0, 0]


def test_a_relay_killed_in_the_middle_loses_nothing_and_repeats_no_more_than_it_had_in_hand(tmp_path: Path) -> None:
    done = demo(tmp_path, *QUICK, "--kill", "--json")
    found = verdict(done)
    assert done.returncode == 0
    assert_everything_arrived(found)
    assert found["kills"] == 1
    assert found["epoch"] >= 2  # its successor took the lanes over
    assert found["repeats"] <= found["most_repeats"] == 200 * (found["epoch"] - 1)


@pytest.mark.parametrize(
    ("sabotage", "said"),
    [
        ("loss", "never reached mailer"),
        ("disorder", "reached mailer out of order"),
        ("phantom", "never happened, yet reached mailer"),
        ("repeats", "can be explained"),
    ],
)
def test_a_receiver_that_cheats_is_found_out(tmp_path: Path, sabotage: str, said: str) -> None:
    done = demo(tmp_path, *QUICK, "--sabotage", sabotage, "--json")
    assert done.returncode == 1
    assert any(said in failure for failure in verdict(done)["failures"])


def test_it_leaves_nothing_behind(played: Played) -> None:
    folder, done = played
    assert done.returncode == 0
    assert list(folder.iterdir()) == []


def test_what_is_kept_can_be_looked_at(tmp_path: Path) -> None:
    done = demo(tmp_path, *QUICK, "--keep", "here")
    assert done.returncode == 0
    assert "Everything is in here" in done.stderr
    kept = {path.name for path in (tmp_path / "here").iterdir()}
    assert {"shop.db", "ledger.txt", "relay_process.log"} <= kept


def test_a_folder_with_something_in_it_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").touch()
    done = demo(tmp_path, *QUICK, "--keep", ".")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "not empty" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--store", "mysql://app:canary-password@here"], "--store postgresql://"),
        (["--transport", "kafka://app:canary-password@here"], "--transport amqp://"),
        (["--seconds", "-1"], "--seconds is -1"),
    ],
)
def test_what_it_cannot_play_on_is_a_usage_error_in_one_line(tmp_path: Path, arguments: list[str], said: str) -> None:
    done = demo(tmp_path, *arguments)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert said in done.stderr
    assert "canary-password" not in done.stderr


def test_a_relay_that_cannot_start_is_an_error_that_says_why(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\nif any('relay_process' in word for word in sys.orig_argv):\n    sys.exit('no relay today')\n"
    )
    done = demo(tmp_path, *QUICK, PYTHONPATH=os.pathsep.join([str(tmp_path), *sys.path]))
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert "relay_process ended with 1: " in done.stderr
    assert "no relay today" in done.stderr


def test_the_console_is_served_meanwhile_and_shows_the_demo(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pillarbox", "demo", "--events", "100000"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(tmp_path), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as playing:
        assert playing.stdout is not None
        try:
            title, window = playing.stdout.readline(), playing.stdout.readline()
            address = window.removeprefix("console: ").strip()
            assert address.startswith("http://127.0.0.1:"), title + window
            assert httpx.get(f"{address}api/v1/relays").json()["relays"][0]["lanes"] > 0
        finally:
            playing.send_signal(signal.SIGINT)
            playing.communicate(timeout=120)
    assert playing.returncode == 0
