"""Child processes of the demo and of the drill.

A child reads its job from standard input and stops when that pipe is closed: the parent closes it to stop the child,
and the kernel closes it if the parent is killed. Therefore no child outlives its parent. A child runs in a session of
its own, so that Ctrl-C on the terminal reaches only the parent.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from pillarbox.core.errors import CommandError

TAIL = 5
"""Lines of a child's log that an error quotes."""


class ChildProcess:
    """Runs a module in its own process; `job` is one line for it, and `log` receives its output."""

    def __init__(self, module: str, job: str, *, log: Path) -> None:
        self._log = log
        self._module = module
        read_end, write_end = os.pipe()
        self._pipe = open(write_end, "wb", buffering=0)  # noqa: SIM115 - open until the child is stopped
        # Written before the child starts: writing to a child that has ended already would raise BrokenPipeError and
        # hide the child's error.
        self._pipe.write(job.encode() + b"\n")
        with log.open("ab") as output, open(read_end, "rb") as stdin:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module],
                stdin=stdin,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it has not ended; a frozen process is running."""
        return self._process.poll() is None

    @property
    def frozen(self) -> bool:
        """Whether a signal stopped it and no SIGCONT has followed."""
        found = os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) if self.running else None
        return found is not None

    def check(self) -> None:
        """Raise CommandError with the end of its log if the process has ended."""
        if (code := self._process.poll()) is not None:
            raise CommandError(f"{self._module} ended with {code}: {self._log_tail()}")

    def freeze(self) -> None:
        """Send SIGSTOP: it keeps its connections and does nothing."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Send SIGCONT: it continues where it was frozen."""
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """Send SIGKILL and wait. Raises CommandError if the process had ended before."""
        self._process.kill()
        if (code := self._process.wait()) != -signal.SIGKILL:
            raise CommandError(f"{self._module} ended with {code} before the kill: {self._log_tail()}")
        self._pipe.close()

    async def stop(self, *, within: float) -> None:
        """Close the pipe and wait for exit code 0. Raises CommandError otherwise."""
        self._pipe.close()
        try:
            code = await asyncio.to_thread(self._process.wait, within)
        except subprocess.TimeoutExpired:
            raise CommandError(f"{self._module} did not end within {within:g} s: {self._log_tail()}") from None
        if code != 0:
            raise CommandError(f"{self._module} ended with {code}: {self._log_tail()}")

    def close(self) -> None:
        """End the process if it still runs."""
        self._pipe.close()
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()

    def _log_tail(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines()[-TAIL:]
        return " / ".join(line for line in lines if line.strip()) or "its log is empty"


def read_job() -> str:
    """Return the line that the parent passed to this process."""
    return sys.stdin.readline()


def on_parent_exit(callback: Callable[[], object]) -> None:
    """Call `callback` on a separate thread when the parent stops this process or ends."""

    def wait() -> None:
        sys.stdin.read()
        callback()

    threading.Thread(target=wait, name="parent", daemon=True).start()
