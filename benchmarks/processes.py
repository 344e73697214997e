"""Worker processes from their start to their report, and the CPU time of servers with all their children."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
MAX_SECONDS = 300.0
"""Seconds without output after which a worker has failed."""
TICKS = os.sysconf("SC_CLK_TCK")


class WorkerFailed(Exception):
    """A worker exited early; the text is its last output."""


class Worker:
    """A worker process: `go` begins its work, `finish` ends it and returns what it reports."""

    def __init__(self, module: str, job: Mapping[str, Any], *, python: str = sys.executable) -> None:
        # A file, because a full pipe would block a worker with much output.
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed when the worker has ended
        self._process = subprocess.Popen(
            [python, "-m", module, json.dumps(job)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        self._module = module

    def wait_ready(self) -> None:
        if self._line() != "ready":
            raise WorkerFailed(f"{self._module} did not say that it is ready")

    @property
    def pid(self) -> int:
        return self._process.pid

    def go(self) -> None:
        self._say("go")

    def finish(self) -> dict[str, Any]:
        self._say("stop")
        return self.report()

    def report(self) -> dict[str, Any]:
        """What a worker reports when it has ended."""
        report: dict[str, Any] = json.loads(self._line())
        self._process.wait(60)
        return report

    def check(self) -> None:
        """Raise WorkerFailed if the process has ended."""
        if self._process.poll() is not None:
            self._errors.seek(0)
            raise WorkerFailed(f"{self._module} ended: {self._errors.read()[-2000:]}")

    def end(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()
        self._errors.close()

    def _say(self, word: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word}\n")
        self._process.stdin.flush()

    def _line(self) -> str:
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], MAX_SECONDS)[0]:
            raise WorkerFailed(f"{self._module} said nothing for {MAX_SECONDS:g} s")
        line = self._process.stdout.readline().strip()
        if not line:
            self._process.wait(60)
            self.check()
        return line


@contextmanager
def workers(module: str, jobs: Sequence[Mapping[str, Any]], *, python: str = sys.executable) -> Iterator[list[Worker]]:
    """One process per job, all ready; always ended."""
    with ExitStack() as stack:
        started = []
        for job in jobs:
            worker = Worker(module, job, python=python)
            stack.callback(worker.end)
            started.append(worker)
        for worker in started:
            worker.wait_ready()
        yield started


def cpu_seconds(root: int) -> float:
    """CPU time of a process, its descendants and its children that ended."""
    stats: dict[int, list[str]] = {}
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        stats[int(entry.name)] = fields
        children.setdefault(int(fields[1]), []).append(int(entry.name))
    total, open_ends = 0.0, [root]
    while open_ends:
        pid = open_ends.pop()
        if pid in stats:
            # User and system time of its own, and of the children that it has waited for.
            total += sum(int(value) for value in stats[pid][11:15]) / TICKS
            open_ends += children.get(pid, [])
    return total
