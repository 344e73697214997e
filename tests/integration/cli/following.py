"""Runs a command until Ctrl-C and reads its lines."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.integration.cli.running import environment

_BOUND = 90.0


class Following:
    """A process whose lines are read one by one."""

    def __init__(self, process: subprocess.Popen[bytes], output: int) -> None:
        self._process = process
        self._output = output
        self._read = b""

    def line(self) -> str:
        """The next line. Raises TimeoutError."""
        while b"\n" not in self._read:
            if not select.select([self._output], [], [], _BOUND)[0]:
                raise TimeoutError(f"no line within {_BOUND:g} s")
            if not (more := os.read(self._output, 65536)):
                raise EOFError("the command ended")
            self._read += more
        line, _, self._read = self._read.partition(b"\n")
        return line.decode()

    def interrupt(self) -> int:
        """Send Ctrl-C; returns the exit code."""
        self._process.send_signal(signal.SIGINT)
        return self._process.wait(_BOUND)


@contextmanager
def following(*arguments: str, **variables: str) -> Iterator[Following]:
    process = subprocess.Popen(
        [sys.executable, "-m", "pillarbox", *arguments],
        env=environment(variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with process:
        try:
            assert process.stdout is not None
            yield Following(process, process.stdout.fileno())
        finally:
            process.kill()
