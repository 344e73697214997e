"""Python processes that start without importing libraries: forks of one process that has imported them already.

Most of the CPU time of an application's start goes into its libraries. A fork is a process like any other, with a pid,
an environment, a folder, streams, a session and an exit status of its own, and imports our modules itself. Unlike the
process of the tests, the fork server has no thread, no connection and no open file that a fork could inherit.

`python -m`, typed as users type it, is tested with the READMEs and the demos.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import selectors
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile
from threading import Lock
from typing import IO, TypedDict

from tests.servers import processes
from tests.servers.processes import ServerFailed, Started
from tests.servers.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
BOUND = 300.0
LIBRARIES = (
    "aiosmtpd.controller",
    "alembic.command",
    "asyncpg",
    "click",
    "fastapi",
    "httpx",
    "opentelemetry.propagate",
    "pika",
    "prometheus_client",
    "psycopg",
    "sqlalchemy.dialects.postgresql",
    "sqlalchemy.dialects.sqlite",
    "uvicorn.protocols.http.h11_impl",
)
_LONGEST = 65_536
_STREAMS = 3


class Request(TypedDict):
    """What a fork becomes: `python -m module arguments…`."""

    module: str
    arguments: Sequence[str]
    folder: str
    environment: Mapping[str, str]


class Forked:
    """One fork, with the methods of `subprocess.Popen` that the tests use."""

    def __init__(self, server: ForkServer, pid: int, name: str) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._server = server
        self._name = name

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self._server.exit_status(self.pid)
        return self.returncode

    def wait(self, timeout: float = BOUND) -> int:
        """Raises TimeoutError."""
        wait_until(lambda: self.poll() is not None, bound=timeout, what=f"{self._name} (pid {self.pid}) ends")
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(9)


class ForkServer:
    """Starts with the first fork. `close` ends it; its forks must have ended before."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._started: Started | None = None
        self._ended: dict[int, int] = {}

    def fork(self, request: Request, *, stdout: IO[bytes], stderr: IO[bytes]) -> Forked:
        """Start a process with this output and no input."""
        with self._lock, open(os.devnull, "rb") as stdin:
            if self._started is None:
                self._start()
            streams = [stdin.fileno(), stdout.fileno(), stderr.fileno()]
            socket.send_fds(self._control, [json.dumps(request).encode()], streams)
            while (pid := self._receive()) is None:
                pass
            return Forked(self, pid, request["module"])

    def exit_status(self, pid: int) -> int | None:
        """None while it runs."""
        with self._lock:
            try:
                while pid not in self._ended:
                    self._receive(socket.MSG_DONTWAIT)
            except BlockingIOError:
                return None
            return self._ended.pop(pid)

    def close(self) -> None:
        if self._started is None:
            return
        self._control.close()
        self._started.wait_gone(bound=BOUND)
        processes.forget(self._started)
        self._started = None

    def _receive(self, flags: int = 0) -> int | None:
        """The pid of a new fork; None for the news that one has ended."""
        news = self._control.recv(_LONGEST, flags)
        if not news:
            raise ServerFailed("the fork server has ended")
        pid, status = json.loads(news)
        if status is None:
            return int(pid)
        self._ended[pid] = status
        return None

    def _start(self) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.servers.forkserver", str(theirs.fileno())],
                env={"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.defpath},
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                # Ctrl-C is for the test run, which then ends its processes in order.
                start_new_session=True,
            )
        self._started = Started(name="fork server", process=process, log=Path(os.devnull), ports=())
        processes.registry.processes.append(self._started)


SERVER = ForkServer()


def start(module: str, *arguments: str, folder: Path, environment: Mapping[str, str], log: IO[bytes]) -> Forked:
    """`python -m module arguments…` in the background, in a session of its own, with all its output in the log."""
    return SERVER.fork(_request(module, arguments, folder, environment), stdout=log, stderr=log)


def run(module: str, *arguments: str, folder: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """`python -m module arguments…`, run to its end. Raises TimeoutError."""
    with TemporaryFile() as out, TemporaryFile() as err:
        process = SERVER.fork(_request(module, arguments, folder, environment), stdout=out, stderr=err)
        try:
            code = process.wait()
        finally:
            process.kill()
        return subprocess.CompletedProcess([module, *arguments], code, _read(out), _read(err))


def _request(module: str, arguments: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Request:
    return {"module": module, "arguments": arguments, "folder": str(folder), "environment": environment}


def _read(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode()


# -- in the fork server ---------------------------------------------------------------------------------------------


def serve(control: socket.socket) -> Request | None:
    """Fork for each request. Returns in each fork with its request, and in the server with None once the tests end."""
    with selectors.DefaultSelector() as selector:
        selector.register(control, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is not control:
                    selector.unregister(key.fileobj)
                    os.close(key.fd)
                    _, status = os.waitpid(key.data, 0)
                    control.send(json.dumps([key.data, os.waitstatus_to_exitcode(status)]).encode())
                    continue
                wanted, streams, _, _ = socket.recv_fds(control, _LONGEST, _STREAMS)
                if not wanted:
                    return None
                pid = os.fork()
                if pid == 0:
                    _take_over(streams)
                    request: Request = json.loads(wanted)
                    return request
                for stream in streams:
                    os.close(stream)
                selector.register(os.pidfd_open(pid), selectors.EVENT_READ, pid)
                control.send(json.dumps([pid, None]).encode())


def _take_over(streams: Sequence[int]) -> None:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.setsid()


def become(request: Request) -> None:
    """Run the module as Python does at its start. Nothing of the server stays open."""
    os.closerange(_STREAMS, os.sysconf("SC_OPEN_MAX"))
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.path[0] = request["folder"]
    sys.argv = [request["module"], *request["arguments"]]
    runpy.run_module(request["module"], run_name="__main__", alter_sys=True)


def main() -> None:
    for library in LIBRARIES:
        import_module(library)
    # Those that this module uses: a fork imports ours itself, in its own environment.
    for ours in [name for name in sys.modules if name.split(".")[0] == "pillarbox"]:
        del sys.modules[ours]
    gc.freeze()  # a fork that collects garbage would otherwise copy all of it
    with socket.socket(fileno=int(sys.argv[1])) as control:
        request = serve(control)
    if request is not None:
        become(request)


if __name__ == "__main__":
    main()
