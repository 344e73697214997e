"""A mail server that tests can kill and let reject mails, and a gateway with scripted responses."""

from __future__ import annotations

import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

from tests.apps.notifications.processes import environment
from tests.servers import forkserver, processes
from tests.servers.ports import free_port
from tests.servers.processes import Started
from tests.servers.waiting import wait_until

BOUND = 90.0


def start(module: str, *arguments: str, folder: Path, log: Path, **variables: str) -> Started:
    """Start a Python process that the leak check tracks."""
    with log.open("ab") as output:
        process = forkserver.start(module, *arguments, folder=folder, environment=environment(**variables), log=output)
    started = Started(name=module, process=process, log=log, ports=())
    processes.registry.processes.append(started)
    return started


def ended(started: Started) -> int:
    """Wait for its end; returns the exit code."""
    code = started.process.wait(BOUND)
    if started in processes.registry.processes:
        processes.forget(started)
    return code


class Mail(NamedTuple):
    """A mail that the server accepted."""

    id: str
    to: list[str]
    sender: str
    subject: str
    body: str


class MailServer:
    """`mail_process` with its folder; it keeps its port and its mails after a kill and a restart."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.port = free_port()
        self._started: Started | None = None

    def start(self) -> None:
        ready = self.folder / "ready"
        ready.unlink(missing_ok=True)
        self._started = start(
            "tests.apps.notifications.delivery.mail_process",
            str(self.folder),
            str(self.port),
            folder=self.folder,
            log=self.folder / "log",
        )
        wait_until(lambda: self._running().must_run() and ready.exists(), bound=BOUND, what="the mail server starts")

    def kill(self) -> None:
        self._running().process.kill()
        ended(self._running())
        self._started = None

    def close(self) -> None:
        if self._started is not None:
            self.kill()

    def refuse(self, **refusals: str) -> None:
        """Set the replies by the local part of the address; `everybody` for all."""
        rules = {"*" if name == "everybody" else f"{name}@example.org": said for name, said in refusals.items()}
        new = self.folder / "refusals.new"
        new.write_text(json.dumps(rules))
        new.rename(self.folder / "refusals.json")

    def kill_client_after_its_next_mail(self, pid: int) -> None:
        (self.folder / "kill").write_text(str(pid))

    @property
    def mails(self) -> list[Mail]:
        file = self.folder / "mails.jsonl"
        lines = map(json.loads, file.read_text().splitlines()) if file.exists() else ()
        return [Mail(one["id"], one["to"], one["from"], one["subject"], one["body"]) for one in lines]

    def _running(self) -> Started:
        assert self._started is not None
        return self._started


class Hook(NamedTuple):
    """A request to the gateway."""

    path: str
    key: str | None
    authorization: str | None
    message: dict[str, Any]


class Gateway:
    """A push or SMS gateway on a free port that keeps its requests."""

    def __init__(self) -> None:
        self.received: list[Hook] = []
        self.answer: Callable[[Hook], int] = lambda _: 202
        """Returns the status; the request is already in `received`."""
        gateway = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                hook = Hook(self.path, self.headers["Idempotency-Key"], self.headers["Authorization"], body)
                gateway.received.append(hook)
                self.send_response(gateway.answer(hook))
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Silence the access log."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def to(self, *paths: str) -> list[Hook]:
        return [hook for hook in self.received if hook.path in paths]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
