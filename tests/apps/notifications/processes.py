"""Runs the processes of the application, and relays with its settings file."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import count
from pathlib import Path

from tests.servers import forkserver, processes
from tests.servers.processes import Started

ROOT = Path(__file__).resolve().parents[3]
SETTINGS = ROOT / "apps" / "notifications" / "pillarbox.toml"
FAST_SETTINGS = {
    # As shipped, but without the initial delay, and with a short lease.
    "PILLARBOX_RELAY__INITIAL_DELAY": "0s",
    "PILLARBOX_RELAY__LEASE": "3s",
    "PILLARBOX_RELAY__HEARTBEAT_INTERVAL": "300ms",
    "PILLARBOX_RELAY__SEND_TIMEOUT": "1s",
}
_numbers = count(1)


def environment(**variables: str) -> dict[str, str]:
    return {"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.defpath, **variables}


def notifications(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run `python -m apps.notifications` to its end."""
    return forkserver.run("apps.notifications", *arguments, folder=ROOT, environment=environment(**variables))


def run_relay(database: str, broker: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a relay with the shipped settings until the outbox is empty."""
    variables = environment(PILLARBOX_STORE=database, PILLARBOX_TRANSPORT=broker, **FAST_SETTINGS, **variables)
    return forkserver.run(
        "pillarbox", "--config", str(SETTINGS), "relay", "--until-empty", folder=ROOT, environment=variables
    )


class Process:
    """A process in the background."""

    def __init__(self, folder: Path, module: str, *arguments: str, **variables: str) -> None:
        self.log = folder / f"{module}-{next(_numbers)}.log"
        with self.log.open("wb") as output:
            process = forkserver.start(
                module, *arguments, folder=ROOT, environment=environment(**variables), log=output
            )
        self._started = Started(name=module, process=process, log=self.log, ports=())
        processes.registry.processes.append(self._started)

    @property
    def pid(self) -> int:
        return self._started.pid

    @property
    def running(self) -> bool:
        return self._started.running

    def terminate(self) -> None:
        self._started.terminate()

    def kill(self) -> None:
        self._started.process.kill()

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
        self.kill()
        self.wait()


class Fleet:
    """The processes of one test on one database and one broker; killed at its end."""

    def __init__(self, folder: Path, *, database: str, broker: str, **variables: str) -> None:
        self._folder = folder
        self._servers = {"PILLARBOX_STORE": database, "PILLARBOX_TRANSPORT": broker, **variables}
        self._started: list[Process] = []

    def relay(self, **variables: str) -> Process:
        """A relay with the shipped settings and short intervals."""
        return self.start("pillarbox", "--config", str(SETTINGS), "relay", **{**FAST_SETTINGS, **variables})

    def listener(self, *audiences: str, verbose: bool = False) -> Process:
        return self.start("apps.notifications", *(["--verbose"] if verbose else []), "listen", *audiences)

    def start(self, module: str, *arguments: str, **variables: str) -> Process:
        self._started.append(Process(self._folder, module, *arguments, **self._servers, **variables))
        return self._started[-1]

    def log_texts(self) -> str:
        return "\n".join(f"--- {process.log.name}\n{process.log_text()[-3000:]}" for process in self._started)

    def close(self) -> None:
        for process in self._started:
            process.end()
