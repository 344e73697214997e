"""The demo as a person starts it: a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

BOUND = 300
COMMAND = (sys.executable, "-m", "apps.notifications.demo")


def environment(folder: Path, **more: str) -> dict[str, str]:
    """Temporary folders lie in `folder`."""
    return {"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.defpath, "TMPDIR": str(folder)} | more


def demo(folder: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run it to its end."""
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=folder,
        env=environment(folder, **more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=False,
    )


def verdict(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """What `--json` printed."""
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found
