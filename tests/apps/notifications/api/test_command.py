"""`python -m apps.notifications serve` as a person starts it."""

from __future__ import annotations

import signal
from pathlib import Path

import httpx

from tests.apps.notifications.delivery.outside import BOUND, ended, start
from tests.servers.ports import free_port, is_open
from tests.servers.waiting import wait_until


def test_it_answers_until_it_is_told_to_stop_and_keeps_nobody_waiting(sqlite_database: str, tmp_path: Path) -> None:
    port = free_port()
    process = start(
        "apps.notifications",
        *("serve", "--port", str(port)),
        folder=tmp_path,
        log=tmp_path / "log",
        PILLARBOX_STORE=sqlite_database,
    )
    wait_until(lambda: process.must_run() and is_open(port), bound=BOUND, what="it listens")
    client = httpx.Client(base_url=f"http://127.0.0.1:{port}", headers={"X-User-Id": "1"}, timeout=BOUND)
    with client, client.stream("GET", "/users/1/notifications/live") as stream:
        lines = stream.iter_lines()
        assert next(lines) == "retry: 2000"
        assert httpx.get(f"http://127.0.0.1:{port}/health").json()["status"] == "UP"
        process.signal(signal.SIGTERM)
        assert list(lines) == [""]  # the stream ends as it should
    assert ended(process) == 0
