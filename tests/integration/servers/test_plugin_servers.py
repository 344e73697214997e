"""The servers of the pytest plugin, in a project of its own: started on request, gone at the end."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pillarbox.testing.servers import MissingServer, PostgresServer, RabbitMQServer, binaries
from tests.servers.availability import available
from tests.servers.ports import is_open

TEST = """
import pika
import psycopg

from pillarbox import Event, Outbox


def test_the_tables_are_there(pillarbox_postgres_url, captured_outbox):
    with psycopg.connect(pillarbox_postgres_url) as connection:
        Outbox().record(connection, Event("order.placed", {"id": 42}))
    with psycopg.connect(pillarbox_postgres_url) as connection:
        captured_outbox.read(connection).assert_recorded("order.placed", payload__id=42)


async def test_the_database_is_new(pillarbox_postgres_url):
    with psycopg.connect(pillarbox_postgres_url) as connection:
        assert connection.execute("SELECT count(*) FROM outbox_message").fetchone() == (0,)


def test_the_broker_accepts_connections(pillarbox_postgres, pillarbox_rabbitmq):
    with pika.BlockingConnection(pika.URLParameters(pillarbox_rabbitmq.url())) as connection:
        connection.channel().queue_declare("orders")
    for server in (pillarbox_postgres, pillarbox_rabbitmq):
        print("\\nserver", server.port, server.folder)
"""


def test_servers_start_on_request_and_leave_nothing(tmp_path: Path) -> None:
    available(binaries.POSTGRES.path)
    available(binaries.RABBITMQ_SERVER.path)
    (tmp_path / "test_shop.py").write_text(TEST, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-s", "-o", "asyncio_mode=auto"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    servers = re.findall(r"^server (\d+) (\S+)$", done.stdout, re.MULTILINE)
    assert len(servers) == 2
    for port, folder in servers:
        assert not is_open(int(port))
        assert not Path(folder).exists()


@pytest.mark.parametrize(("program", "server"), [("POSTGRES", PostgresServer), ("EPMD", RabbitMQServer)])
def test_a_missing_program_says_what_to_install(
    program: str, server: type[PostgresServer | RabbitMQServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = binaries.Binary(name="no-such-server", package="no-such-package")
    monkeypatch.setattr(binaries, program, missing)
    with pytest.raises(MissingServer, match=r"package no-such-package\); install it, or .* PILLARBOX_TEST_SERVERS"):
        server()
