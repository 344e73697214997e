"""`python -m pillarbox relay` as a process of its own, with limits and with an environment of its own."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path

from tests.servers import processes
from tests.servers.processes import Started
from tests.servers.waiting import wait_until

BATCH_SIZE = 100
BATCHES = 2
MAX_IN_FLIGHT = BATCH_SIZE * BATCHES
"""Events that a crash or a lost connection may send again, at most."""

_SETTINGS = {
    "RELAY__BATCH_SIZE": str(BATCH_SIZE),
    "RELAY__MAX_IN_FLIGHT_BATCHES": str(BATCHES),
    "RELAY__POLL_INTERVAL": "200ms",
    "RELAY__RETRY__BASE": "100ms",
    "RELAY__RETRY__MAX_DELAY": "1s",
    "RELAY__RETRY__MAX_ATTEMPTS": "unlimited",
    "RELAY__DRAIN_TIMEOUT": "20s",
}
_numbers = count(1)


class RelayProcess:
    """One process; its name is its label in `outbox_relay`.

    settings: variables of the settings, without `PILLARBOX_`.
    environment: other variables.
    limits: options of `prlimit`, such as `--nofile=64`.
    program: a module that runs the command line, with its own arguments.
    """

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, str],
        *,
        environment: Mapping[str, str] | None = None,
        limits: Sequence[str] = (),
        program: Sequence[str] = ("pillarbox",),
    ) -> None:
        self.name = f"relay-{next(_numbers)}"
        self.log = folder / f"{self.name}.log"
        variables = {f"PILLARBOX_{name}": value for name, value in (_SETTINGS | dict(settings)).items()}
        limited = ["prlimit", *limits, "--"] if limits else []
        with self.log.open("wb") as output:
            process = subprocess.Popen(
                [*limited, sys.executable, "-m", *program, "relay", "--name", self.name],
                cwd=folder,
                env={"PATH": os.defpath, "PYTHONPATH": os.pathsep.join(sys.path), **variables, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self._started = Started(name=self.name, process=process, log=self.log, ports=())
        processes.registry.processes.append(self._started)

    @property
    def pid(self) -> int:
        return self._started.pid

    @property
    def running(self) -> bool:
        return self._started.running

    def kill(self) -> None:
        self._started.process.kill()

    def stop(self) -> int:
        """Let it drain; return the exit code."""
        if self.running:
            self._started.terminate()
        return self.wait()

    def wait(self) -> int:
        """Return the exit code, once it has ended."""
        code = self._started.process.wait(60)
        if self._started in processes.registry.processes:
            processes.forget(self._started)
        return code

    def end(self) -> None:
        """End the process if it still runs."""
        if self.running:
            self._started.process.send_signal(signal.SIGCONT)
            self.kill()
        self.wait()

    def story(self) -> str:
        """Return its log."""
        return self.log.read_text(errors="replace")

    def said(self, words: str) -> bool:
        return words in self.story()

    def warnings(self) -> int:
        """Return the number of warnings in its log."""
        return self.story().count(" WARNING ")

    def cpu_seconds(self) -> float:
        """Return the CPU time that it has used, on all cores."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def descriptors(self) -> int:
        """Return the number of its open file descriptors."""
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    def limit_descriptors(self) -> None:
        """Let it open no more file descriptors than it has."""
        used = {int(one.name) for one in Path(f"/proc/{self.pid}/fd").iterdir()}
        self._limit_descriptors(next(number for number in count() if number not in used))

    def unlimit_descriptors(self) -> None:
        """Let it open as many as when it started."""
        self._limit_descriptors(resource.prlimit(self.pid, resource.RLIMIT_NOFILE)[1])

    def _limit_descriptors(self, number: int) -> None:
        _, most = resource.prlimit(self.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(self.pid, resource.RLIMIT_NOFILE, (number, most))

    def threads(self) -> int:
        """Return the number of its threads."""
        return len(list(Path(f"/proc/{self.pid}/task").iterdir()))

    def resources(self) -> dict[str, int]:
        """Return what it uses: descriptors, threads, and resident bytes."""
        return {"descriptors": self.descriptors(), "threads": self.threads(), "memory": self._memory("VmRSS")}

    def counted(self, file: Path) -> dict[str, int]:
        """Return how many tasks and objects it has; its program is `tests.extremes.counted` with this file."""
        file.unlink(missing_ok=True)
        self._started.process.send_signal(signal.SIGUSR1)
        wait_until(file.exists, bound=60, what=f"{self.name} has counted")
        found: dict[str, int] = json.loads(file.read_text())
        return found

    def peak_memory(self) -> int:
        """Return the most resident bytes that it has had."""
        return self._memory("VmHWM")

    def _memory(self, name: str) -> int:
        lines = (line.split() for line in Path(f"/proc/{self.pid}/status").read_text().splitlines())
        return next(int(fields[1]) for fields in lines if fields[0] == f"{name}:") * 1024
