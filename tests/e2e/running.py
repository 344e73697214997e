"""Commands in a folder of their own, which must not find the source tree by accident."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path


def run(command: Sequence[str | Path], cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    words = [str(part) for part in command]
    return subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


def must_run(command: Sequence[str | Path], cwd: Path) -> str:
    done = run(command, cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
