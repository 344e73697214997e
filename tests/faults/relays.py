"""`pillarbox relay` as a process that can be frozen, killed and told to drain."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from itertools import count
from pathlib import Path

from tests.servers import processes
from tests.servers.processes import Started

LEASE = 3.0
BATCH_SIZE = 100
IN_FLIGHT = 2
IN_HAND = BATCH_SIZE * IN_FLIGHT
"""The most that one crash may send again."""

_TUNING = {
    "PILLARBOX_RELAY__BATCH_SIZE": str(BATCH_SIZE),
    "PILLARBOX_RELAY__IN_FLIGHT": str(IN_FLIGHT),
    "PILLARBOX_RELAY__LEASE": f"{LEASE:g}s",
    "PILLARBOX_RELAY__HEARTBEAT": "500ms",
    "PILLARBOX_RELAY__SEND_TIMEOUT": "2s",
    "PILLARBOX_RELAY__POLL_INTERVAL": "200ms",
    "PILLARBOX_RELAY__DRAIN_TIMEOUT": "20s",
    "PILLARBOX_RELAY__RETRY__BASE": "100ms",
    "PILLARBOX_RELAY__RETRY__MAX": "1s",
    "PILLARBOX_RELAY__RETRY__MAX_ATTEMPTS": "0",
}
_numbers = count(1)


class RelayProcess:
    """One process; its name is its label in `outbox_relay`."""

    def __init__(self, folder: Path, *, store: str, transport: str, more: Mapping[str, str]) -> None:
        self.name = f"relay-{next(_numbers)}"
        self.log = folder / f"{self.name}.log"
        environment = {"PYTHONPATH": os.pathsep.join([str(folder), *sys.path]), "PATH": os.defpath}
        environment |= {"PILLARBOX_STORE": store, "PILLARBOX_TRANSPORT": transport} | _TUNING | dict(more)
        with self.log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "pillarbox", "relay", "--name", self.name],
                env=environment,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._started = Started(name=self.name, process=process, log=self.log, ports=())
        processes.registry.processes.append(self._started)

    @property
    def running(self) -> bool:
        return self._started.running

    def freeze(self) -> None:
        self._started.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._started.process.send_signal(signal.SIGCONT)

    def terminate(self) -> None:
        self._started.process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self._started.process.kill()

    def wait(self, *, bound: float = 40) -> int:
        """The return code, once it has ended by whatever means."""
        code = self._started.process.wait(bound)
        if self._started in processes.registry.processes:
            processes.forget(self._started)
        return code

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def end(self) -> None:
        """At the end of a test, whatever became of it."""
        if self.running:
            self.kill()
        self.wait()
