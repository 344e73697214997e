"""`python -m apps.notifications serve` as a process."""

from __future__ import annotations

import resource
import signal
from pathlib import Path

import httpx

from tests.apps.notifications.delivery.servers import BOUND, ended, start
from tests.integration.telemetry.test_idle_connections import DESCRIPTORS, idle_connections
from tests.servers.ports import free_port, is_open
from tests.servers.processes import Started
from tests.servers.waiting import wait_until


def serve(port: int, database: str, folder: Path) -> Started:
    """Start the API, and wait until it listens."""
    process = start(
        "apps.notifications",
        *("serve", "--port", str(port)),
        folder=folder,
        log=folder / "log",
        PILLARBOX_STORE=database,
    )
    wait_until(lambda: process.must_run() and is_open(port), bound=BOUND, what="it listens")
    return process


def test_serve_ends_live_streams_and_exits_on_sigterm(sqlite_database: str, tmp_path: Path) -> None:
    port = free_port()
    process = serve(port, sqlite_database, tmp_path)
    client = httpx.Client(base_url=f"http://127.0.0.1:{port}", headers={"X-User-Id": "1"}, timeout=BOUND)
    with client, client.stream("GET", "/users/1/notifications/live") as stream:
        lines = stream.iter_lines()
        assert next(lines) == "retry: 2000"
        assert httpx.get(f"http://127.0.0.1:{port}/health").json()["status"] == "UP"
        process.signal(signal.SIGTERM)
        assert list(lines) == [""]  # the stream ends without an error
    assert ended(process) == 0


def test_idle_connections_do_not_block_requests(sqlite_database: str, tmp_path: Path) -> None:
    port = free_port()
    process = serve(port, sqlite_database, tmp_path)
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    with idle_connections(f"127.0.0.1:{port}", b"GET /health HTTP/1.1\r\n"):
        assert httpx.get(f"http://127.0.0.1:{port}/health", timeout=BOUND).json()["status"] == "UP"
    assert len((tmp_path / "log").read_text()) < 100_000
    process.signal(signal.SIGTERM)
    assert ended(process) == 0
