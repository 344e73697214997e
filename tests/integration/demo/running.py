"""Runs `pillarbox demo` in its own process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

BOUND = 300
QUICK = ("--events", "300", "--rate", "1000")


def environment(folder: Path, **more: str) -> dict[str, str]:
    """Environment variables that put temporary folders into `folder`."""
    return {"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.defpath, "TMPDIR": str(folder)} | more


def demo(folder: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run the demo until it ends."""
    return subprocess.run(
        [sys.executable, "-m", "pillarbox", "demo", *arguments],
        cwd=folder,
        env=environment(folder, **more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=False,
    )


def json_result(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """Return what `--json` printed."""
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def assert_everything_arrived(found: dict[str, Any]) -> None:
    assert (found["ok"], found["failures"]) == (True, [])
    for receiver in found["receivers"]:
        assert receiver["handled"] + receiver["rejected"] == found["committed"]
