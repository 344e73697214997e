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

from apps.ingestion.demo.course import STATUSES, Verdict
from apps.ingestion.demo.place import NoPlace, prepared
from tests.apps.ingestion.running import BOUND, environment
from tests.integration.rabbitmq.consumer import channel
from tests.servers import forkserver
from tests.servers.postgres import PostgresServer
from tests.servers.waiting import wait_until

MODULE = "apps.ingestion.demo"
COMMAND = [sys.executable, "-m", MODULE]


def demo(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return forkserver.run(MODULE, *words, folder=folder, environment=environment(TMPDIR=str(folder), **variables))


def test_embedded_every_document_goes_all_the_way_and_nothing_is_left_behind(tmp_path: Path) -> None:
    done = demo(tmp_path, "--seconds", "1.2")
    assert done.returncode == 0, done.stderr
    first, *_, last = done.stdout.splitlines()
    assert first == "SQLite → relay → handlers → validation, enrichment"
    assert last == "Every document went all the way, once."
    assert "\x1b" not in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_over_servers_it_has_a_database_and_queues_of_its_own_that_are_gone_afterwards(
    postgres_server: PostgresServer, broker: str, tmp_path: Path
) -> None:
    where = {"DEMO_STORE": postgres_server.url(), "DEMO_TRANSPORT": broker}
    done = demo(tmp_path, "--seconds", "1", "--json", **where)
    assert done.returncode == 0, done.stderr
    verdict = json.loads(done.stdout)
    assert (verdict["ok"], verdict["lost"], verdict["phantom"]) == (True, 0, 0)
    assert verdict["statuses"]["ENRICHED"] == verdict["uploaded"] > 0
    with psycopg.connect(postgres_server.url()) as connection:
        left = connection.execute("SELECT datname FROM pg_database WHERE datname LIKE 'ingestion_demo%%'").fetchall()
    assert left == []
    with channel(broker) as meddling:  # had it left a queue of this name, the broker would refuse another kind
        meddling.queue_declare("document.uploaded.q", auto_delete=True)
        refused = demo(tmp_path, "--seconds", "1", **where)
    assert refused.returncode == 1
    assert "has document.uploaded.q already; name a virtual host of the demo's own" in refused.stderr


@pytest.mark.parametrize(
    ("store", "transport"),
    [
        ("postgresql://app:s3cret-word@127.0.0.1:1/x", ""),
        ("mysql://app:s3cret-word@127.0.0.1:1/x", ""),
        ("", "amqp://app:s3cret-word@127.0.0.1:1/"),
        ("", "kafka://app:s3cret-word@127.0.0.1:1/"),
    ],
)
def test_a_place_where_it_cannot_play_is_named_without_its_password(store: str, transport: str) -> None:
    with pytest.raises(NoPlace) as refused, prepared(store, transport):
        pass
    assert str(refused.value).startswith("DEMO_STORE" if store else "DEMO_TRANSPORT")
    assert "s3cret-word" not in str(refused.value)


@pytest.fixture
def endless(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A demo under way."""
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


def test_an_interrupt_ends_the_uploading_and_is_followed_by_the_verdict(
    endless: subprocess.Popen[str], tmp_path: Path
) -> None:
    endless.send_signal(signal.SIGINT)
    said, complaints = endless.communicate(timeout=BOUND)
    assert (endless.returncode, complaints) == (0, "")
    assert json.loads(said)["ok"] is True
    assert list(tmp_path.iterdir()) == []


def test_on_a_terminal_the_table_shows_the_way_of_each_document(tmp_path: Path) -> None:
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


def verdict(**changes: int) -> Verdict:
    enriched = changes.pop("enriched", 3)
    statuses = {"UPLOADED": 3 - enriched, "VALIDATED": 0, "ENRICHED": enriched}
    given = {"uploaded": 3, "lost": 0, "phantom": 0, "refused": 0} | changes
    return Verdict(**given, statuses=statuses, seconds=1.0)


def test_the_verdict_notices_what_is_missing() -> None:
    assert verdict().ok
    assert not verdict(enriched=2).ok
    assert not verdict(lost=1).ok
    assert not verdict(phantom=1).ok
    assert not verdict(refused=1).ok
    assert not verdict(uploaded=0, enriched=0).ok
