"""The demo without servers: everything is delivered after a mail outage, and the demo cleans up."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

from click.testing import CliRunner

from apps.notifications.demo.__main__ import demo as command
from tests.apps.notifications.demo.running import BOUND, COMMAND, demo, environment, verification


def test_everything_is_delivered_and_push_continues_during_a_mail_outage(tmp_path: Path) -> None:
    done = demo(tmp_path, "--seconds", "3", "--json")
    found = verification(done)
    assert (done.returncode, found["ok"], found["failures"]) == (0, True, [])
    assert found["path"] == "SQLite → relay → listeners → delivery"
    assert found["events"] > 5
    assert found["outages"] == 1
    assert found["delivered_during_outages"] > 0
    assert sum(found["delivered"].values()) + sum(found["waiting"].values()) == found["notifications"]
    assert found["duplicates"] == 0
    assert list(tmp_path.iterdir()) == []


def test_without_a_terminal_the_demo_prints_lines_and_ctrl_c_starts_the_verification(tmp_path: Path) -> None:
    process = subprocess.Popen(
        COMMAND, cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(3)]
    process.send_signal(signal.SIGINT)
    rest, errors = process.communicate(timeout=BOUND)
    assert (process.returncode, errors) == (0, "")
    assert lines[0] == "SQLite → relay → listeners → delivery\n"
    assert "recording: " in lines[1]
    assert "delivered EMAIL" in lines[2]
    assert "\x1b" not in rest
    assert rest.endswith("✔ Verified: every notification was created once; every delivery is completed or waiting.\n")
    assert list(tmp_path.iterdir()) == []


def test_invalid_options_are_rejected() -> None:
    for arguments in (("--seconds", "0"), ("--seconds", "soon"), ("--rate", "0"), ("--rate", "1000")):
        assert CliRunner().invoke(command, arguments).exit_code == 2
