"""The page on backup and recovery works as typed on a real database; a repeated event has its id."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import psycopg
import pytest

from pillarbox import Event, Inbox, Outbox
from tests.docs.pages import ROOT
from tests.docs.walkthrough import Reader, environment
from tests.servers import debian, processes
from tests.servers.availability import available
from tests.servers.postgres import PostgresServer

PAGE = ROOT / "docs/how-to/backup-and-recovery.md"
SETTINGS = """
[relay]
heartbeat_interval = "500ms"

[transports.out]
url = "stdout://"
"""
_REPEATABLE = re.compile("pillarbox events list")


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with available(lambda: PostgresServer(durable=False)) as server:
        server.create_database("shop")
        yield server


@pytest.fixture
def variables(server: PostgresServer, tmp_path: Path) -> dict[str, str]:
    (tmp_path / "pillarbox.toml").write_text(SETTINGS)
    return environment(tmp_path) | {"PILLARBOX_STORE": server.url("shop")}


def pillarbox(folder: Path, variables: Mapping[str, str], *arguments: str) -> str:
    command = ["pillarbox", *arguments]
    done = subprocess.run(command, cwd=folder, env=dict(variables), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def record(server: PostgresServer, *types: str) -> None:
    with psycopg.connect(server.url("shop")) as connection:
        Outbox().record(connection, *(Event(event_type, {}) for event_type in types))


@pytest.mark.contrib
def test_the_page_works_as_typed(server: PostgresServer, variables: dict[str, str], tmp_path: Path) -> None:
    pillarbox(tmp_path, variables, "schema", "apply")
    record(server, "order.placed")
    pillarbox(tmp_path, variables, "relay", "--until-empty")
    record(server, "payment.requested", "order.placed")
    instead = {"postgresql://app@127.0.0.1:5432/": server.url("")}
    Reader(tmp_path, variables, instead=instead, repeatable=_REPEATABLE).follow(PAGE)
    query = "SELECT event_type, count(*) FROM public.outbox_history GROUP BY event_type"
    with psycopg.connect(server.url("restored")) as connection:
        assert dict(connection.execute(query).fetchall()) == {"order.placed": 2}, "the payment was discarded"
        audited = "SELECT count(*) FROM public.outbox_audit WHERE what = 'discard'"
        assert connection.execute(audited).fetchone() == (1,)


@pytest.mark.contrib
def test_a_restored_event_has_its_id_and_an_inbox_skips_it(
    server: PostgresServer, variables: dict[str, str], tmp_path: Path
) -> None:
    pillarbox(tmp_path, variables, "schema", "apply")
    record(server, "order.placed")
    dump = server.folder / "shop.dump"
    processes.run([available(debian.PG_DUMP.path), "-Fc", "-f", str(dump), server.url("shop")], folder=server.folder)
    sent = pillarbox(tmp_path, variables, "relay", "--until-empty")
    server.create_database("restored")
    processes.run(
        [available(debian.PG_RESTORE.path), "-e", "-d", server.url("restored"), str(dump)], folder=server.folder
    )
    again = pillarbox(tmp_path, variables | {"PILLARBOX_STORE": server.url("restored")}, "relay", "--until-empty")
    ids = [_event_id(output) for output in (sent, again)]
    assert ids[0] == ids[1]
    # The database of the consumer, which was not restored.
    server.create_database("consumer")
    pillarbox(tmp_path, variables | {"PILLARBOX_STORE": server.url("consumer")}, "schema", "apply")
    admitted = []
    for event_id in ids:
        with psycopg.connect(server.url("consumer")) as connection:
            admitted.append(Inbox().admit(connection, "billing", event_id))
    assert admitted == [True, False]


def _event_id(output: str) -> str:
    [event] = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return str(event["event_id"])
