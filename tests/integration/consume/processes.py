"""Runs `pillarbox consume` as a process with a consumer that crashes on request."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import count
from pathlib import Path

from tests.servers import processes
from tests.servers.processes import Started

APP = Path(__file__).with_name("billing_app.py")
_numbers = count(1)


class ConsumerProcess:
    """One process. Files in `folder` control where it crashes and when it continues."""

    def __init__(self, folder: Path, app: Path = APP, **variables: str) -> None:
        (folder / app.name).write_text(app.read_text())
        self.folder = folder
        self.log = folder / f"consumer-{next(_numbers)}.log"
        with self.log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "pillarbox", "consume", f"{app.stem}:consumer"],
                env={"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.defpath, **variables},
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self._started = Started(name="pillarbox consume", process=process, log=self.log, ports=())
        processes.registry.processes.append(self._started)

    @property
    def ended(self) -> bool:
        return not self._started.running

    def terminate(self) -> None:
        self._started.terminate()

    def wait(self, bound: float = 40) -> int:
        """Wait for its end; returns the exit code."""
        code = self._started.process.wait(bound)
        if self._started in processes.registry.processes:
            processes.forget(self._started)
        return code

    def log_text(self) -> str:
        """Its log."""
        return self.log.read_text(errors="replace")

    def end(self) -> None:
        """Kill it at the end of a test."""
        self._started.process.kill()
        self.wait()
