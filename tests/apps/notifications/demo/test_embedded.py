"""The demo without any server: everybody is told, mail breaks and recovers, and nothing is left behind."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

from click.testing import CliRunner

from apps.notifications.demo.__main__ import demo as command
from tests.apps.notifications.demo.running import BOUND, COMMAND, demo, environment, verdict


def test_everything_arrives_and_push_goes_on_while_mail_is_broken(tmp_path: Path) -> None:
    done = demo(tmp_path, "--seconds", "3", "--json")
    found = verdict(done)
    assert (done.returncode, found["ok"], found["failures"]) == (0, True, [])
    assert found["path"] == "SQLite → relay → listeners → delivery"
    assert found["events"] > 5
    assert found["breakdowns"] == 1
    assert found["pushed_meanwhile"] > 0
    assert sum(found["delivered"].values()) + sum(found["waiting"].values()) == found["notifications"]
    assert found["repeats"] == 0
    assert list(tmp_path.iterdir()) == []


def test_without_a_terminal_it_tells_in_lines_and_ctrl_c_ends_it_with_the_verdict(tmp_path: Path) -> None:
    process = subprocess.Popen(
        COMMAND, cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    told = [process.stdout.readline() for _ in range(3)]
    process.send_signal(signal.SIGINT)
    rest, errors = process.communicate(timeout=BOUND)
    assert (process.returncode, errors) == (0, "")
    assert told[0] == "SQLite → relay → listeners → delivery\n"
    assert "business: " in told[1]
    assert "delivered EMAIL" in told[2]
    assert "\x1b" not in rest
    assert rest.endswith("✔ Every notification once, every delivery done or waiting.\n")
    assert list(tmp_path.iterdir()) == []


def test_figures_that_make_no_sense_are_refused() -> None:
    for arguments in (("--seconds", "0"), ("--seconds", "soon"), ("--rate", "0"), ("--rate", "1000")):
        assert CliRunner().invoke(command, arguments).exit_code == 2
