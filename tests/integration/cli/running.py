"""`pillarbox` as a process with an environment of its own."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path


def environment(more: Mapping[str, str]) -> dict[str, str]:
    return {"PYTHONPATH": ":".join(sys.path), "PATH": "/usr/bin:/bin"} | dict(more)


def pillarbox(*arguments: str, cwd: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "pillarbox", *arguments],
        env=environment(variables),
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
