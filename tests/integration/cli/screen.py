"""Runs a full-screen command on a terminal until Ctrl-C."""

import os
import pty
import signal
import subprocess
import sys

from tests.integration.cli.running import environment
from tests.integration.cli.terminal import Session


def interrupted(*arguments: str, shown: str, **variables: str) -> Session:
    """Run it on a terminal, send Ctrl-C when it shows this text, and read to the end."""
    ours, theirs = pty.openpty()
    screen = b""
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
            while more := _read(ours):
                screen += more
                if shown.encode() in screen:
                    process.send_signal(signal.SIGINT)
                    break
            while more := _read(ours):
                screen += more
            return Session(process.wait(120), screen.decode())
    finally:
        os.close(ours)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other side is closed
        return b""
