"""Runs `pillarbox` on a terminal."""

import os
import pty
import subprocess
import sys
from typing import NamedTuple

from tests.integration.cli.running import environment


class Session(NamedTuple):
    """The result of a command."""

    returncode: int
    screen: str


def at_terminal(*arguments: str, typed: str = "", **variables: str) -> Session:
    """Run a command on a terminal; `typed` is the input."""
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "pillarbox", *arguments],
            env=environment({"TERM": "xterm", "COLUMNS": "200"} | variables),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        with process:
            os.write(ours, typed.encode())
            screen = _everything(ours)
            return Session(process.wait(120), screen)
    finally:
        os.close(ours)


def _everything(terminal: int) -> str:
    shown = b""
    while True:
        try:
            more = os.read(terminal, 65536)
        except OSError:  # the other side is closed
            more = b""
        if not more:
            return shown.decode()
        shown += more
