"""The processes of the service, each with its log in the folder of the demo; they end with the demo."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from apps.ingestion.demo.environment import Environment

ROOT = Path(__file__).resolve().parents[3]
DRAIN_TIMEOUT = 30.0
"""Seconds that a process may take to drain."""


class ProcessFailed(Exception):
    """A process exited unexpectedly; the text is the last line of its log."""


class Processes:
    """The running processes, and the port of the API."""

    def __init__(self, environment: Environment) -> None:
        self.port = _free_port()
        self._folder = environment.folder
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("INGESTION_")}
        self._environment |= {
            "INGESTION_STORE": environment.store,
            "INGESTION_TRANSPORT": environment.transport,
            "INGESTION_LISTEN": f"127.0.0.1:{self.port}",
            "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
        }

    @classmethod
    @contextmanager
    def started(cls, environment: Environment) -> Iterator[Processes]:
        """Create the tables and start the processes; drain them at the end. Raises ProcessFailed."""
        processes = cls(environment)
        with ExitStack() as stack:
            stack.callback(processes._end)
            processes._start("migrate").wait()
            processes.check()
            for command in ("serve", *(("validate", "enrich") if environment.transport else ())):
                processes._start(command)
            yield processes

    def check(self) -> None:
        """Raises ProcessFailed if a process exited unexpectedly."""
        for command, child in self._children.items():
            if child.poll() not in (None, 0 if command == "migrate" else None):
                lines = self._log(command).read_text(errors="replace").splitlines()
                raise ProcessFailed(f"`{command}` ended with {child.returncode}: {lines[-1] if lines else 'no output'}")

    def _start(self, command: str) -> subprocess.Popen[bytes]:
        with self._log(command).open("wb") as log:
            child = subprocess.Popen(
                [sys.executable, "-m", "apps.ingestion", command],
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # the demo handles Ctrl-C and stops them in order
            )
        self._children[command] = child
        return child

    def _end(self) -> None:
        for child in self._children.values():
            child.terminate()
        for child in self._children.values():
            try:
                child.wait(DRAIN_TIMEOUT)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()

    def _log(self, command: str) -> Path:
        return self._folder / f"{command}.log"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
