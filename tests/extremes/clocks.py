"""A wall clock for one process, from libfaketime. Elapsed time, and every other process, keep theirs."""

from __future__ import annotations

import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from tests.servers import processes
from tests.servers.debian import COMPILER, Binary

LIBFAKETIME = Binary(name="libfaketimeMT.so.1", package="libfaketime", elsewhere="/usr/lib:*/faketime/", on_path=False)
HOUR = 3600
_TIMESTAMP = re.compile(r"^(\d{4}-\S+Z) ", re.MULTILINE)
_SHARED_MEMORY = Path("/dev/shm")
_SOURCE = Path(__file__).with_name("cnd_timedwait.c")
"""What libfaketime lacks."""


class FakeClock:
    """The clock of one process and of its children; it can jump while they run."""

    def __init__(self) -> None:
        library, compiler = LIBFAKETIME.path(), COMPILER.path()
        self._folder = processes.make_folder("clock")
        addition = self._folder / "cnd_timedwait.so"
        subprocess.run([compiler, "-shared", "-fPIC", "-o", addition, _SOURCE, "-ldl"], check=True)
        addition.chmod(0o755)
        self._libraries = f"{addition}:{library}"
        self._offset = self._folder / "clock.txt"
        self._pids: list[int] = []
        self.jump(0)

    @property
    def environment(self) -> dict[str, str]:
        """Variables of the process."""
        return {
            "LD_PRELOAD": self._libraries,
            "FAKETIME_TIMESTAMP_FILE": str(self._offset),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def jump(self, seconds: int) -> None:
        """Set the clock to the true time and that many seconds."""
        changed = self._offset.with_suffix(".new")
        changed.write_text(f"{seconds:+}\n")
        changed.chmod(0o644)
        changed.rename(self._offset)

    def shows_in(self, log: str, seconds: int) -> bool:
        """Return whether the last line of a log was written that many seconds from now, give or take a quarter."""
        written = datetime.fromisoformat(_TIMESTAMP.findall(log)[-1])
        return abs((written - datetime.now(UTC)).total_seconds() - seconds) < HOUR / 4

    def script(self, program: str, folder: Path) -> str:
        """Write a script that runs a program of the servers under this clock; return its path."""
        path = folder / "under-fake-clock"
        exports = "".join(f"export {name}={value}\n" for name, value in self.environment.items())
        path.write_text(f'#!/bin/sh\n{exports}exec {program} "$@"\n')
        path.chmod(0o755)
        processes.hand_over(path)
        return str(path)

    def serve(self, pid: int) -> None:
        """Note a process under this clock: the library leaves shared memory of it behind."""
        self._pids.append(pid)

    def close(self) -> None:
        for pid in self._pids:
            for name in (f"faketime_shm_{pid}", f"sem.faketime_sem_{pid}"):
                (_SHARED_MEMORY / name).unlink(missing_ok=True)
        processes.remove_folder(self._folder)
