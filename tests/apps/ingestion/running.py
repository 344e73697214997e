"""Runs `python -m apps.ingestion` as processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Self

import httpx

from tests.servers import forkserver, processes
from tests.servers.ports import free_port
from tests.servers.processes import Started
from tests.servers.waiting import wait_until

ROOT = Path(__file__).resolve().parents[3]
BOUND = 90
_numbers = count(1)


def environment(**variables: str) -> dict[str, str]:
    """The import path of the caller, and nothing else of its environment."""
    return {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])} | variables


def ingestion(*words: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return forkserver.run("apps.ingestion", *words, folder=cwd, environment=environment(**variables))


class Running:
    """A process of the service, from its readiness to its end."""

    ready = ""

    def __init__(self, command: str, folder: Path, variables: Mapping[str, str], *ports: int) -> None:
        log = folder / f"{command}-{next(_numbers)}.log"
        with log.open("wb") as output:
            process = forkserver.start(
                "apps.ingestion", command, folder=folder, environment=environment(**variables), log=output
            )
        self.started = Started(name=command, process=process, log=log, ports=ports)
        processes.registry.processes.append(self.started)

    def has_logged(self, text: str) -> bool:
        """Whether its log contains the text."""
        self.started.must_run()
        return text in self.log_text()

    def log_text(self) -> str:
        return self.started.log.read_text(errors="replace")

    def stop(self) -> int:
        """Send SIGTERM; returns the exit code."""
        self.started.signal(signal.SIGTERM)
        return self.ended()

    def ended(self) -> int:
        code = self.started.process.wait(BOUND)
        if self.started in processes.registry.processes:
            processes.forget(self.started)
        return code

    def __enter__(self) -> Self:
        try:
            wait_until(lambda: self.has_logged(self.ready), bound=BOUND, what=f"{self.started.name}: {self.ready!r}")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self.started.running:
            self.started.kill()
        self.ended()


class Service(Running):
    """A running `serve` with a client."""

    ready = "Uvicorn running"

    def __init__(self, *, folder: Path, **variables: str) -> None:
        self.port = free_port()
        listen = f"127.0.0.1:{self.port}"
        super().__init__("serve", folder, variables | {"INGESTION_LISTEN": listen}, self.port)
        self.client = httpx.Client(base_url=f"http://{listen}", timeout=BOUND)

    def upload(self, name: str = "test-document.pdf", **headers: str) -> httpx.Response:
        body = {"name": name, "contentType": "application/pdf", "fileSize": 1024000, "uploadedBy": "test-user"}
        return self.client.post("/api/v1/documents", json=body, headers=headers)

    def document(self, document_id: str) -> dict[str, object]:
        found: dict[str, object] = self.client.get(f"/api/v1/documents/{document_id}").json()
        return found

    def wait_for(self, document_id: str, status: str) -> dict[str, object]:
        """Wait for a status; returns the document."""
        wait_until(
            lambda: self.document(document_id)["status"] == status, bound=BOUND, what=f"{document_id} is {status}"
        )
        return self.document(document_id)

    def __exit__(self, *details: object) -> None:
        self.client.close()
        super().__exit__(*details)


class Consuming(Running):
    """`validate` or `enrich`."""

    ready = "-service started"


def migrate(store: str, folder: Path) -> str:
    """Migrate the store; returns its URL."""
    done = ingestion("migrate", cwd=folder, INGESTION_STORE=store)
    assert done.returncode == 0, done.stderr
    return store


@contextmanager
def consumers(folder: Path, **variables: str) -> Iterator[tuple[Running, Running]]:
    """Run validation-service and enrichment-service."""
    with Consuming("validate", folder, variables) as one, Consuming("enrich", folder, variables) as two:
        yield one, two
