"""Every process that the tests start, from its start to its verified end.

A process is known by its pid and is signalled by nothing else. Its descendants are found through their
parents in /proc: PostgreSQL's back ends leave the process group, so a group would not find them.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from pillarbox.testing.servers.ports import is_open
from pillarbox.testing.servers.waiting import wait_until

_PROC = Path("/proc")
_MEMORY = Path("/dev/shm")  # noqa: S108 - folders in it are made by mkdtemp
_PLENTY = 4 * 1024**3
_START = 60.0
"""Seconds for a start, generous, for a busy machine."""


class ServerFailed(Exception):
    """A server or one of its tools ended in a way it should not have."""


class Process(Protocol):
    """What the tests use of `subprocess.Popen`."""

    @property
    def pid(self) -> int: ...

    @property
    def returncode(self) -> int | None: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float) -> int: ...

    def send_signal(self, number: int, /) -> None: ...

    def kill(self) -> None: ...


@dataclass(slots=True)
class Started:
    """What the leak check needs to know of one process."""

    name: str
    process: Process
    log: Path
    ports: tuple[int, ...]
    family: set[int] = field(default_factory=set)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        """Signals this process alone and remembers its children, which outlive it for a moment."""
        self.family |= descendants(self.pid)
        if self.running:
            self.process.send_signal(number)

    def terminate(self) -> None:
        """Send SIGTERM as soon as the process catches it: it would end a process that is still starting."""
        wait_until(
            lambda: not self.running or _catches(self.pid, signal.SIGTERM),
            bound=_START,
            what=f"{self.name} (pid {self.pid}) catches SIGTERM",
        )
        self.signal(signal.SIGTERM)

    def kill(self) -> None:
        """Ends the process and all its descendants at once, as a power cut would."""
        self.signal(signal.SIGKILL)
        for pid in self.family:
            _signal(pid, signal.SIGKILL)

    def wait_gone(self, bound: float) -> None:
        """Returns when process and children are gone and the ports are closed."""
        wait_until(self.gone, bound=bound, what=f"{self.name} (pid {self.pid}) ends")

    def gone(self) -> bool:
        return (
            not self.running
            and not any(_alive(pid) for pid in self.family)
            and not any(is_open(port) for port in self.ports)
        )

    def must_run(self) -> bool:
        """True; ServerFailed with the end of the log if the process has ended."""
        if not self.running:
            raise ServerFailed(f"{self.name} ended with status {self.process.returncode}:\n{tail(self.log)}")
        return True


@dataclass(slots=True)
class Registry:
    """Everything started and every folder made in this process and not yet proven gone."""

    processes: list[Started] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)


registry = Registry()


def make_folder(name: str, *, in_memory: bool = False) -> Path:
    """A folder that only the servers' user may enter, in memory if asked for and if there is plenty.

    In /tmp whatever TMPDIR says: the path of a Unix socket is limited to 107 bytes, and the servers' user
    must be able to reach it when root runs the tests.
    """
    place = _MEMORY if in_memory and _room_in_memory() else Path("/tmp")  # noqa: S108 - mkdtemp
    folder = Path(tempfile.mkdtemp(prefix=f"pillarbox-{name}-", dir=place))
    registry.folders.append(folder)
    hand_over(folder)
    return folder


def hand_over(*paths: Path) -> None:
    """Give files of root to the user of the servers, whatever the umask of root."""
    owner = _unprivileged()
    if owner is not None:
        for path in paths:
            os.chown(path, owner.pw_uid, owner.pw_gid)


def remove_folder(folder: Path) -> None:
    shutil.rmtree(folder)
    registry.folders.remove(folder)


def spawn(
    command: Sequence[str],
    *,
    name: str,
    folder: Path,
    log: Path,
    ports: tuple[int, ...] = (),
    environment: Mapping[str, str] | None = None,
    privileged: bool = False,
    namespace: str = "",
) -> Started:
    """Starts a server in the background, as an unprivileged user if root runs the tests.

    With `privileged`, as the user of the tests: no other user may be able to read their interpreter. `namespace` is the
    name of a network namespace to run in, which only root can enter; the ports must then be empty.
    """
    user = [] if privileged else _dropping_privileges()
    with log.open("ab") as output:
        process = subprocess.Popen(
            [*_entering(namespace), *user, *command],
            cwd=folder,
            env=clean_environment(folder) | dict(environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # Ctrl-C is for the test run, which then stops its servers in order.
            start_new_session=True,
        )
    started = Started(name=name, process=process, log=log, ports=ports)
    registry.processes.append(started)
    return started


def forget(started: Started) -> None:
    """Takes a process off the leak check once it is proven gone."""
    registry.processes.remove(started)


def run(
    command: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str] | None = None,
    input: str = "",
    namespace: str = "",
) -> str:
    """Runs a server's tool to its end as the servers' user; ServerFailed with what it said if it fails.

    `namespace` is the name of a network namespace to run in, which only root can enter.
    """
    done = subprocess.run(
        [*_entering(namespace), *_dropping_privileges(), *command],
        cwd=folder,
        env=clean_environment(folder) | dict(environment or {}),
        input=input,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip()
        raise ServerFailed(f"{' '.join(command)} ended with status {done.returncode}:\n{said}")
    return done.stdout


def clean_environment(folder: Path) -> dict[str, str]:
    """Nothing of the caller's environment reaches a server: no PGHOST, no RABBITMQ_*, no HOME."""
    return {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(folder), "LANG": "C.UTF-8"}


def descendants(pid: int) -> set[int]:
    """The pids below a process, at this moment."""
    children: dict[int, list[int]] = {}
    for entry in _PROC.glob("[0-9]*"):
        parent = _parent(int(entry.name))
        if parent is not None:
            children.setdefault(parent, []).append(int(entry.name))
    found: set[int] = set()
    open_ends = [pid]
    while open_ends:
        for child in children.get(open_ends.pop(), []):
            found.add(child)
            open_ends.append(child)
    return found


def tail(log: Path, lines: int = 20) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])


def state(pid: int) -> str | None:
    """The state code from /proc, for example T for stopped; None if the process is gone."""
    stat = _stat(pid)
    return None if stat is None else stat[0]


def _parent(pid: int) -> int | None:
    stat = _stat(pid)
    return None if stat is None or stat[0] == "Z" else int(stat[1])


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat after the name."""
    try:
        # The name in brackets may itself hold blanks and brackets.
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def _catches(pid: int, number: signal.Signals) -> bool:
    """Whether it has a handler of its own for this signal."""
    try:
        status = (_PROC / str(pid) / "status").read_text()
    except OSError:
        return False
    caught = int(status.partition("\nSigCgt:")[2].partition("\n")[0], 16)
    return bool(caught >> (number - 1) & 1)


def _alive(pid: int) -> bool:
    return _parent(pid) is not None


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _room_in_memory() -> bool:
    return _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free >= _PLENTY


def _unprivileged() -> pwd.struct_passwd | None:
    """The user of the servers when root runs the tests, because PostgreSQL and PgBouncer refuse to run as root."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return pwd.getpwuid(65_534)  # exists on every Linux


def _dropping_privileges() -> list[str]:
    user = _unprivileged()
    if user is None:
        return []
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", "--"]


def _entering(namespace: str) -> list[str]:
    return ["nsenter", f"--net=/run/netns/{namespace}", "--"] if namespace else []
