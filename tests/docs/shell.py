"""A terminal with a shell in it, where a test types the commands of a page."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import subprocess
import termios
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.servers.processes import descendants

BOUND = 120.0
"""The timeout in seconds of every wait."""

_PROMPT = re.compile(r"<prompt (\d+)>")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_CTRL_C = b"\x03"


class Shell:
    """bash on a terminal of 100 columns. Its prompt contains the exit code of the previous command."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._ours, theirs = pty.openpty()
        # What is typed is not shown again: the screen holds what programs say.
        attributes = termios.tcgetattr(theirs)
        attributes[3] &= ~termios.ECHO
        termios.tcsetattr(theirs, termios.TCSANOW, attributes)
        termios.tcsetwinsize(theirs, (50, 100))
        self._process = subprocess.Popen(
            ["bash", "--noprofile", "--norc", "--noediting", "-i"],
            cwd=folder,
            env=dict(environment) | {"TERM": "xterm", "PS1": "<prompt $?>", "HISTFILE": ""},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=_take_terminal,
        )
        os.close(theirs)
        self._raw = b""
        self.wait_for(self.idle)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the terminal: the shell ends with all its processes."""
        for pid in descendants(self._process.pid) | {self._process.pid}:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._ours)

    @property
    def screen(self) -> str:
        """What was shown since the last command was typed."""
        text = self._raw.decode(errors="replace").replace("\r\n", "\n")
        return _PROMPT.sub("", _ESCAPES.sub("", text))

    def idle(self) -> bool:
        """Is the command at its end?"""
        return self.status is not None

    @property
    def status(self) -> int | None:
        """The exit code of the last command; None while it runs."""
        found = _PROMPT.search(self._raw.decode(errors="replace"))
        return int(found[1]) if found else None

    def type(self, command: str) -> None:
        """Type a command and Enter; the shell must be idle."""
        assert self.idle(), f"something runs in this terminal already: {self.screen}"
        self._raw = b""
        os.write(self._ours, f"{command}\n".encode())

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        os.write(self._ours, _CTRL_C)

    def wait_for(self, fact: Callable[[], bool]) -> bool:
        """Read the screen until the fact holds; False if it does not within the bound."""
        end = time.monotonic() + BOUND
        while not fact():
            if time.monotonic() > end:
                return False
            if select.select([self._ours], [], [], 0.05)[0]:
                self._raw += os.read(self._ours, 65536)
        return True


def _take_terminal() -> None:
    """Make standard input the terminal of this session, so that Ctrl-C reaches the foreground process."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
