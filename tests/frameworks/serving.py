"""Starts the processes of an example in its environment and ends them; asks a web server on loopback."""

import json
import signal
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any
from urllib.error import HTTPError

from tests.frameworks.environment import Environment
from tests.servers.ports import is_open
from tests.servers.waiting import wait_until

BOUND = 120.0


@contextmanager
def running(
    environment: Environment, *command: str, folder: Path, variables: Mapping[str, str], port: int | None = None
) -> Iterator[subprocess.Popen[str]]:
    """A process of the environment until the end of the block, which stops it by SIGTERM. Waits for its port."""
    with TemporaryFile("w+") as output:
        process = subprocess.Popen(
            [str(environment.bin / command[0]), *command[1:]],
            cwd=folder,
            env=environment.variables(variables),
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
        )

        def is_ready() -> bool:
            if process.poll() is not None:
                output.seek(0)
                raise AssertionError(f"{command} ended:\n{output.read()}")
            return port is None or is_open(port)

        try:
            wait_until(is_ready, bound=BOUND, what=f"{command[0]} listens")
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(BOUND)
            process.kill()
            process.wait()


def post(port: int, path: str) -> tuple[int, Any]:
    """Status and JSON of a POST request to the server on this port of loopback."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", method="POST")
    try:
        with urllib.request.urlopen(request, timeout=BOUND) as response:  # noqa: S310 - likewise
            return response.status, json.load(response)
    except HTTPError as refused:
        with refused:
            return refused.code, None
