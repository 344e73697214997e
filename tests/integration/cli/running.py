"""Runs `pillarbox` as a process with its own environment.

`pillarbox()` forks this process, which has imported everything already, because most of a command's time would be the
start of Python. The tests of the built wheel cover a fresh start. A test that has a SQLite file open uses
`fresh_pillarbox()`: a child must not inherit SQLite's state of its locks.
"""

import asyncio
import logging
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, NoReturn

from pillarbox.ops.cli import main
from pillarbox.ops.cli.root import COMMANDS
from tests.servers.waiting import wait_until

BOUND = 120.0
PAUSE = 0.002

for _name in COMMANDS:
    import_module(f"pillarbox.ops.cli.{_name}")


def environment(more: Mapping[str, str]) -> dict[str, str]:
    return {"PYTHONPATH": ":".join(sys.path), "PATH": "/usr/bin:/bin"} | dict(more)


def pillarbox(*arguments: str, cwd: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    command = ["pillarbox", *arguments]
    with TemporaryFile() as out, TemporaryFile() as err:
        child = os.fork()
        if child == 0:
            _become(command, environment(variables), cwd, out, err)
        code = _ended(child, command)
        return subprocess.CompletedProcess(command, code, _read(out), _read(err))


def fresh_pillarbox(*arguments: str, cwd: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end in a new Python process."""
    return subprocess.run(
        [sys.executable, "-m", "pillarbox", *arguments],
        env=environment(variables),
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=False,
    )


def _ended(child: int, command: Sequence[str]) -> int:
    found: list[int] = []

    def has_ended() -> bool:
        process, status = os.waitpid(child, os.WNOHANG)
        if process:
            found.append(os.waitstatus_to_exitcode(status))
        return bool(found)

    try:
        wait_until(has_ended, bound=BOUND, what=f"{command} ends", pause=PAUSE)
    except TimeoutError as error:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise subprocess.TimeoutExpired(list(command), BOUND) from error
    return found[0]


def _become(
    command: list[str], variables: Mapping[str, str], cwd: Path | None, out: IO[bytes], err: IO[bytes]
) -> NoReturn:
    code: object = 1
    try:
        _reset_process_state(out, err)
        os.environ.clear()
        os.environ.update(variables)
        if cwd is not None:
            os.chdir(cwd)
        sys.path.insert(0, os.getcwd())
        sys.argv = command
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code
        except BaseException:
            sys.excepthook(*sys.exc_info())
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code if isinstance(code, int) else int(code is not None))


def _reset_process_state(out: IO[bytes], err: IO[bytes]) -> None:
    """Reset what a new process would not have: captured output, warning filters, logging, a running loop."""
    os.dup2(out.fileno(), 1)
    os.dup2(err.fileno(), 2)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - it lives as long as the process
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False, errors="backslashreplace", buffering=1)  # noqa: SIM115
    sys.excepthook = sys.__excepthook__
    warnings.resetwarnings()
    logging.root.handlers.clear()
    logging.root.setLevel(logging.WARNING)
    asyncio.events._set_running_loop(None)


def _read(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode()
