"""Runs a relay or a consumer as a process that serves its pages, and reads them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families

from tests.servers import processes
from tests.servers.processes import Started
from tests.servers.waiting import wait_until

_numbers = count(1)


class Pages:
    """The pages of a process."""

    def __init__(self, address: str, log: Path, process: subprocess.Popen[bytes]) -> None:
        self.address = address
        self._log = log
        self._process = process

    def get(self, path: str) -> httpx.Response:
        return httpx.get(f"http://{self.address}{path}", timeout=90)

    def health(self) -> tuple[int, dict[str, Any]]:
        answer = self.get("/health")
        return answer.status_code, answer.json()

    def value(self, name: str, **labels: str) -> float | None:
        """The value of a series, of any outbox unless the labels name one; None if it does not exist."""
        for sample in self._samples(name):
            found = {label: value for label, value in sample.labels.items() if label != "outbox" or label in labels}
            if found == labels:
                return float(sample.value)
        return None

    def labels(self, name: str) -> list[dict[str, str]]:
        """The labels of every series of a metric."""
        return [sample.labels for sample in self._samples(name)]

    def _samples(self, name: str) -> Iterator[Any]:
        families = text_string_to_metric_families(self.get("/metrics").text)
        return (sample for family in families for sample in family.samples if sample.name == name)

    def until(self, name: str, wanted: float, **labels: str) -> None:
        """Wait for a metric to have this value."""
        wait_until(
            lambda: self.value(name, **labels) == wanted,
            bound=90,
            what=f"{name}{labels} is {wanted}: {self.log_text()}",
        )

    def descriptors(self) -> int:
        """The number of open file descriptors."""
        return len(list(Path(f"/proc/{self._process.pid}/fd").iterdir()))

    def state(self) -> str:
        """The state of the process, T if it is stopped."""
        return Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()[0]

    def log_text(self) -> str:
        return self._log.read_text(errors="replace")

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def stop(self) -> int:
        """Send SIGTERM; returns the exit code."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(120)


@contextmanager
def running(command: list[str], *, cwd: Path, variables: Mapping[str, str]) -> Iterator[Pages]:
    """Run a Python process whose first line has its address, as JSON or text."""
    out, log = cwd / f"out-{next(_numbers)}", cwd / f"log-{next(_numbers)}"
    with out.open("wb") as output, log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, *command],
            env={"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.defpath, **variables},
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
        )
    started = Started(name=" ".join(command), process=process, log=log, ports=())
    processes.registry.processes.append(started)
    try:
        wait_until(lambda: started.must_run() and b"\n" in out.read_bytes(), bound=90, what="its first line")
        yield Pages(_address(out.read_text().splitlines()[0]), log, process)
    finally:
        process.kill()
        process.wait()
        processes.forget(started)


def relay(cwd: Path, **variables: str) -> Any:
    """`pillarbox relay` on a free port."""
    listening = {"PILLARBOX_RELAY__LISTEN": "127.0.0.1:0", "PILLARBOX_LOGGING__EVENTS": "true", **variables}
    return running(["-m", "pillarbox", "relay", "--json"], cwd=cwd, variables=listening)


def exporter(cwd: Path, **variables: str) -> Any:
    """`pillarbox exporter` on a free port."""
    return running(["-m", "pillarbox", "exporter", "--listen", "127.0.0.1:0"], cwd=cwd, variables=variables)


def _address(line: str) -> str:
    if line.startswith("{"):
        return str(json.loads(line)["listen"])
    return line.rpartition("http://")[2].removesuffix("/metrics")
