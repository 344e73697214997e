"""The demo on PostgreSQL and RabbitMQ, in every combination."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from pika.exceptions import ChannelClosedByBroker

from tests.integration.demo.running import BOUND, QUICK, assert_everything_arrived, demo, environment, json_result
from tests.integration.rabbitmq.consumer import channel
from tests.servers.rabbitmq import RabbitMQServer


def schemas(url: str) -> list[str]:
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'pillarbox_demo_%'")
        return [name for (name,) in rows]


def test_postgresql_with_rabbitmq_and_a_consumer(
    tmp_path: Path, empty_postgres_url: str, rabbitmq_server: RabbitMQServer
) -> None:
    done = demo(
        tmp_path, *QUICK, "--kill", "--json", "--store", empty_postgres_url, "--transport", rabbitmq_server.url()
    )
    found = json_result(done)
    assert done.returncode == 0
    assert_everything_arrived(found)
    assert [receiver["receiver"] for receiver in found["receivers"]] == ["consumer"]
    assert found["kills"] == 1
    assert found["epoch"] >= 2  # its successor took the lanes over
    assert schemas(empty_postgres_url) == []


def test_postgresql_with_handlers(tmp_path: Path, empty_postgres_url: str) -> None:
    found = json_result(demo(tmp_path, *QUICK, "--kill", "--json", DEMO_STORE=empty_postgres_url))
    assert found["path"].startswith("PostgreSQL at 127.0.0.1")
    assert_everything_arrived(found)
    assert (len(found["receivers"]), found["kills"]) == (3, 1)


def test_sqlite_with_rabbitmq(tmp_path: Path, rabbitmq_server: RabbitMQServer) -> None:
    found = json_result(demo(tmp_path, *QUICK, "--json", DEMO_TRANSPORT=rabbitmq_server.url()))
    assert found["path"].startswith("SQLite → relay → RabbitMQ at 127.0.0.1")
    assert_everything_arrived(found)


def test_a_fault_in_the_ledger_of_the_consumer_is_detected(tmp_path: Path, rabbitmq_server: RabbitMQServer) -> None:
    done = demo(tmp_path, *QUICK, "--inject", "loss", "--json", DEMO_TRANSPORT=rabbitmq_server.url())
    assert done.returncode == 1
    assert any("never reached consumer" in failure for failure in json_result(done)["failures"])


def test_keep_keeps_the_schema_and_deletes_the_queue(
    tmp_path: Path, empty_postgres_url: str, rabbitmq_server: RabbitMQServer
) -> None:
    servers = {"DEMO_STORE": empty_postgres_url, "DEMO_TRANSPORT": rabbitmq_server.url()}
    done = demo(tmp_path, *QUICK, "--keep", "here", **servers)
    assert done.returncode == 0
    (name,) = schemas(empty_postgres_url)
    assert f"in schema {name}" in done.stderr
    with channel(rabbitmq_server.url()) as broker, pytest.raises(ChannelClosedByBroker):
        broker.queue_declare(name, passive=True)


@pytest.mark.parametrize(
    ("variable", "url"),
    [
        ("DEMO_STORE", "postgresql://app:canary-password@127.0.0.1:1/shop"),
        ("DEMO_TRANSPORT", "amqp://app:canary-password@127.0.0.1:1/"),
    ],
)
def test_an_unavailable_server_is_an_error_in_one_line(tmp_path: Path, variable: str, url: str) -> None:
    done = demo(tmp_path, *QUICK, **{variable: url})
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert "127.0.0.1" in done.stderr
    assert "canary-password" not in done.stdout + done.stderr


def test_make_demo_passes_servers_and_arguments(
    tmp_path: Path, empty_postgres_url: str, pytestconfig: pytest.Config
) -> None:
    make = ["make", "-s", "-o", "venv", "demo", f"BIN={Path(sys.executable).parent}"]
    done = subprocess.run(
        [*make, f"STORE={empty_postgres_url}", "ARGS=--events 50 --json"],
        cwd=pytestconfig.rootpath,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json_result(done)["path"].startswith("PostgreSQL at 127.0.0.1")
