"""The processes of the system, each with its log in the demo's folder; none outlives the demo."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from apps.ingestion.demo.place import Place

ROOT = Path(__file__).resolve().parents[3]
PATIENCE = 30.0
"""Seconds a process may take to drain."""


class SystemFailed(Exception):
    """A process of the system ended by itself; the text is the last line of its log."""


class System:
    """What runs, and where it takes requests."""

    def __init__(self, place: Place) -> None:
        self.port = _free_port()
        self._folder = place.folder
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("INGESTION_")}
        self._environment |= {
            "INGESTION_STORE": place.store,
            "INGESTION_TRANSPORT": place.transport,
            "INGESTION_LISTEN": f"127.0.0.1:{self.port}",
            "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
        }

    @classmethod
    @contextmanager
    def started(cls, place: Place) -> Iterator[System]:
        """Tables in place, processes running; all of them drained and gone at the end. Raises SystemFailed."""
        system = cls(place)
        with ExitStack() as stack:
            stack.callback(system._end)
            system._start("migrate").wait()
            system.check()
            for command in ("serve", *(("validate", "enrich") if place.transport else ())):
                system._start(command)
            yield system

    def check(self) -> None:
        """Raises SystemFailed if one has ended that should not have."""
        for command, child in self._children.items():
            if child.poll() not in (None, 0 if command == "migrate" else None):
                lines = self._log(command).read_text(errors="replace").splitlines()
                raise SystemFailed(f"`{command}` ended with {child.returncode}: {lines[-1] if lines else 'no word'}")

    def _start(self, command: str) -> subprocess.Popen[bytes]:
        with self._log(command).open("wb") as log:
            child = subprocess.Popen(
                [sys.executable, "-m", "apps.ingestion", command],
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for the demo, which then stops them in order
            )
        self._children[command] = child
        return child

    def _end(self) -> None:
        for child in self._children.values():
            child.terminate()
        for child in self._children.values():
            try:
                child.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()

    def _log(self, command: str) -> Path:
        return self._folder / f"{command}.log"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
