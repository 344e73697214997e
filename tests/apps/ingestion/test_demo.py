"""`python -m apps.ingestion.demo`: embedded, on servers, on a terminal, interrupted."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from apps.ingestion.demo.environment import prepared
from apps.ingestion.demo.scenario import STATUSES, Verification
from pillarbox import ConfigurationError
from tests.apps.ingestion.running import BOUND, environment
from tests.integration.rabbitmq.consumer import channel
from tests.servers import forkserver
from tests.servers.postgres import PostgresServer
from tests.servers.waiting import wait_until

MODULE = "apps.ingestion.demo"
COMMAND = [sys.executable, "-m", MODULE]


def demo(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return forkserver.run(MODULE, *words, folder=folder, environment=environment(TMPDIR=str(folder), **variables))


def test_the_embedded_demo_enriches_every_document_and_cleans_up(tmp_path: Path) -> None:
    done = demo(tmp_path, "--seconds", "1.2")
    assert done.returncode == 0, done.stderr
    first, *_, last = done.stdout.splitlines()
    assert first == "SQLite → relay → handlers → validation, enrichment"
    assert last == "Verified: every document was enriched once."
    assert "\x1b" not in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_the_demo_on_servers_removes_its_database_and_queues(
    postgres_server: PostgresServer, broker: str, tmp_path: Path
) -> None:
    where = {"DEMO_STORE": postgres_server.url(), "DEMO_TRANSPORT": broker}
    done = demo(tmp_path, "--seconds", "1", "--json", **where)
    assert done.returncode == 0, done.stderr
    verification = json.loads(done.stdout)
    assert (verification["ok"], verification["lost"], verification["phantom"]) == (True, 0, 0)
    assert verification["statuses"]["ENRICHED"] == verification["uploaded"] > 0
    with psycopg.connect(postgres_server.url()) as connection:
        left = connection.execute("SELECT datname FROM pg_database WHERE datname LIKE 'ingestion_demo%%'").fetchall()
    assert left == []
    with channel(broker) as other:  # if the demo had left this queue, the broker would reject the declaration
        other.queue_declare("document.uploaded.q", auto_delete=True)
        refused = demo(tmp_path, "--seconds", "1", **where)
    assert refused.returncode == 1
    assert "has the queue document.uploaded.q already; use another virtual host" in refused.stderr


@pytest.mark.parametrize(
    ("store", "transport"),
    [
        ("postgresql://app:s3cret-word@127.0.0.1:1/x", ""),
        ("mysql://app:s3cret-word@127.0.0.1:1/x", ""),
        ("", "amqp://app:s3cret-word@127.0.0.1:1/"),
        ("", "kafka://app:s3cret-word@127.0.0.1:1/"),
    ],
)
def test_an_unsuitable_server_is_named_without_its_password(store: str, transport: str) -> None:
    with pytest.raises(ConfigurationError) as refused, prepared(store, transport):
        pass
    assert str(refused.value).startswith("DEMO_STORE" if store else "DEMO_TRANSPORT")
    assert "s3cret-word" not in str(refused.value)


@pytest.fixture
def endless(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A running demo."""
    process = subprocess.Popen(
        [*COMMAND, "--seconds", "3600", "--json"],
        env=environment(TMPDIR=str(tmp_path)),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until(
            lambda: any("Document enriched" in log.read_text() for log in tmp_path.glob("ingestion-demo-*/serve.log")),
            bound=BOUND,
            what="a document is enriched",
        )
        yield process
    finally:
        process.kill()
        process.communicate()


def test_an_interrupt_stops_the_uploads_and_starts_the_verification(
    endless: subprocess.Popen[str], tmp_path: Path
) -> None:
    endless.send_signal(signal.SIGINT)
    said, complaints = endless.communicate(timeout=BOUND)
    assert (endless.returncode, complaints) == (0, "")
    assert json.loads(said)["ok"] is True
    assert list(tmp_path.iterdir()) == []


def test_on_a_terminal_the_table_shows_the_status_of_each_document(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    variables = environment(TMPDIR=str(tmp_path), TERM="xterm", COLUMNS="120")
    process = subprocess.Popen(
        [*COMMAND, "--seconds", "0.5"], env=variables, cwd=tmp_path, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    screen = b""
    try:
        while more := os.read(ours, 65536):
            screen += more
    except OSError:  # the other side is closed
        pass
    finally:
        os.close(ours)
    assert process.wait(BOUND) == 0
    shown = screen.decode()
    assert "contract-0001.pdf" in shown
    assert all(status in shown for status in STATUSES)


def verification(**changes: int) -> Verification:
    enriched = changes.pop("enriched", 3)
    statuses = {"UPLOADED": 3 - enriched, "VALIDATED": 0, "ENRICHED": enriched}
    given = {"uploaded": 3, "lost": 0, "phantom": 0, "refused": 0} | changes
    return Verification(**given, statuses=statuses, seconds=1.0)


def test_the_verification_finds_missing_documents() -> None:
    assert verification().ok
    assert not verification(enriched=2).ok
    assert not verification(lost=1).ok
    assert not verification(phantom=1).ok
    assert not verification(refused=1).ok
    assert not verification(uploaded=0, enriched=0).ok
