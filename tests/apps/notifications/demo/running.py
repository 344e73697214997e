"""Runs the demo in a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.servers import forkserver

BOUND = 300
MODULE = "apps.notifications.demo"
COMMAND = (sys.executable, "-m", MODULE)


def environment(folder: Path, **more: str) -> dict[str, str]:
    """The demo creates its temporary folders in `folder`."""
    return {"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.defpath, "TMPDIR": str(folder)} | more


def demo(folder: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run it to its end."""
    return forkserver.run(MODULE, *arguments, folder=folder, environment=environment(folder, **more))


def verification(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The parsed output of `--json`."""
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found
