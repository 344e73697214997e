"""A password in a URL appears in no error, log line, table or process list."""

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from pillarbox import Event, Outbox
from tests.integration.cli.running import environment, pillarbox
from tests.servers.availability import available
from tests.servers.ports import free_port
from tests.servers.postgres import PostgresServer
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.waiting import wait_until

CANARY = "canary-password"

DATABASES = {
    "wrong host": ("postgresql://app:{canary}@nowhere.invalid:{port}/postgres", 1, "Name or service not known"),
    "wrong password": (
        "postgresql://app:{canary}@127.0.0.1:{port}/postgres",
        1,
        'password authentication failed for user "app"',
    ),
    "wrong password among the options": (
        "postgresql://app@127.0.0.1:{port}/postgres?password={canary}",
        1,
        'password authentication failed for user "app"',
    ),
    "wrong database": (
        "postgresql://postgres:{canary}@127.0.0.1:{port}/nowhere",
        1,
        'database "nowhere" does not exist',
    ),
    "refused port": ("postgresql://app:{canary}@127.0.0.1:{closed}/postgres", 1, "ConnectionRefusedError"),
    "TLS against plain": (
        "postgresql://postgres:{canary}@127.0.0.1:{port}/postgres?sslmode=require",
        1,
        "rejected SSL upgrade",
    ),
    "no such option": (
        "postgresql://postgres:{canary}@127.0.0.1:{port}/postgres?sslmode=perhaps",
        1,
        "`sslmode` parameter must be one of",
    ),
    "broken port": ("postgresql://app:{canary}@127.0.0.1:port/postgres", 2, "cannot be told apart"),
    "broken brackets": ("postgresql://app:{canary}@[::1/postgres", 2, "cannot be told apart"),
    "slash in the password": ("postgresql://app:12/{canary}@127.0.0.1:{port}/postgres", 2, "cannot be told apart"),
    "no scheme": ("app:{canary}@127.0.0.1/postgres", 2, "no store for this text"),
    "other scheme": ("oracle://app:{canary}@127.0.0.1/postgres", 2, "no store for oracle://"),
}

BROKERS = {
    "wrong host": ("amqp://app:{canary}@nowhere.invalid:{port}/%2F", 0, "Name or service not known"),
    "wrong password": ("amqp://guest:{canary}@127.0.0.1:{port}/%2F", 0, "ACCESS_REFUSED"),
    "wrong user": ("amqp://app:{canary}@127.0.0.1:{port}/%2F", 0, "ACCESS_REFUSED"),
    "refused port": ("amqp://app:{canary}@127.0.0.1:{closed}/%2F", 0, "ConnectionRefusedError"),
    "TLS against plain": ("amqps://app:{canary}@127.0.0.1:{port}/%2F", 0, "WRONG_VERSION_NUMBER"),
    "broken port": ("amqp://app:{canary}@127.0.0.1:port/", 2, "cannot be told apart"),
    "broken brackets": ("amqp://app:{canary}@[::1/", 2, "cannot be told apart"),
    "slash in the password": ("amqp://app:12/{canary}@127.0.0.1", 2, "cannot be told apart"),
    "options": ("amqp://app:{canary}@127.0.0.1:{port}/?heartbeat={canary}", 2, "takes no options"),
    "no scheme": ("app:{canary}@127.0.0.1", 2, "no transport for this text"),
    "other scheme": ("pigeon://app:{canary}@127.0.0.1", 2, "no transport for pigeon://"),
}


@pytest.fixture(scope="module")
def strict_postgres() -> Iterator[PostgresServer]:
    """A server on which the user `app` has another password."""
    with available(lambda: PostgresServer(durable=False)) as server:
        rules = server.data / "pg_hba.conf"
        rules.write_text(f"host all app 127.0.0.1/32 scram-sha-256\n{rules.read_text()}")
        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute("CREATE ROLE app LOGIN PASSWORD 'another'")
            connection.execute("SELECT pg_reload_conf()")
        wait_until(lambda: _refused(server), bound=90, what="the password is asked for")
        yield server


def _refused(server: PostgresServer) -> bool:
    try:
        psycopg.connect(server.url().replace("postgres@", "app@")).close()
    except psycopg.OperationalError:
        return True
    return False


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A folder with a store that has one event."""
    assert pillarbox("schema", "apply", cwd=tmp_path).returncode == 0
    with closing(sqlite3.connect(tmp_path / "pillarbox.db")) as connection, connection:
        Outbox().record(connection, Event("order.placed", {}))
    return tmp_path


@pytest.mark.parametrize("case", DATABASES)
@pytest.mark.parametrize("command", [["schema", "status"], ["relay", "--until-empty"]], ids=" ".join)
def test_no_error_of_a_database_shows_the_password(
    strict_postgres: PostgresServer, tmp_path: Path, case: str, command: list[str]
) -> None:
    template, code, said = DATABASES[case]
    url = template.format(canary=CANARY, port=strict_postgres.port, closed=free_port())
    done = pillarbox(
        *("--verbose", *command),
        cwd=tmp_path,
        PILLARBOX_STORE=url,
        PILLARBOX_TRANSPORT="stdout://",
        PYTHONASYNCIODEBUG="1",
    )
    assert done.returncode == code, done.stderr
    assert said in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert CANARY not in done.stdout + done.stderr


@pytest.mark.parametrize("case", BROKERS)
def test_no_error_of_a_broker_shows_the_password(rabbitmq_server: RabbitMQServer, shop: Path, case: str) -> None:
    template, code, said = BROKERS[case]
    url = template.format(canary=CANARY, port=rabbitmq_server.port, closed=free_port())
    done = pillarbox(
        *("--verbose", "relay", "--until-empty"), cwd=shop, PILLARBOX_TRANSPORT=url, PYTHONASYNCIODEBUG="1"
    )
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert ("breaker open" in done.stderr) is (code == 0)
    assert CANARY not in done.stdout + done.stderr
    assert all(CANARY.encode() not in file.read_bytes() for file in shop.iterdir())


def test_an_unknown_virtual_host_shows_no_password(rabbitmq_server: RabbitMQServer, shop: Path) -> None:
    rabbitmq_server.add_user("known", CANARY)
    url = f"amqp://known:{CANARY}@127.0.0.1:{rabbitmq_server.port}/nowhere"
    done = pillarbox("--verbose", "relay", "--until-empty", cwd=shop, PILLARBOX_TRANSPORT=url)
    rabbitmq_server.delete_user("known")
    assert "vhost nowhere not found" in done.stderr
    assert CANARY not in done.stdout + done.stderr


def test_config_show_masks_passwords() -> None:
    done = pillarbox(
        *("config", "show"),
        PILLARBOX_STORE=f"postgresql://app:{CANARY}@db/shop?password={CANARY}",
        PILLARBOX_TRANSPORT=f"amqp://app:{CANARY}@mq/",
    )
    assert "postgresql://app:***@db/shop?password=***" in done.stdout
    assert "amqp://app:***@mq/" in done.stdout
    assert CANARY not in done.stdout + done.stderr


def test_a_password_on_the_command_line_is_rejected() -> None:
    done = pillarbox("--set", f"store.url=postgresql://app:{CANARY}@db/shop", "config", "show")
    assert (done.returncode, CANARY in done.stderr) == (2, False)


def test_the_process_list_shows_no_password(shop: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "pillarbox", "relay"],
        env=environment({"PILLARBOX_TRANSPORT": f"amqp://app:{CANARY}@127.0.0.1:{free_port()}/"}),
        cwd=shop,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("relay ")
            listed = subprocess.run(
                ["ps", "-ww", "-o", "args", "-p", str(process.pid)], capture_output=True, text=True, check=True
            ).stdout
        finally:
            process.kill()
    assert "-m pillarbox relay" in listed
    assert CANARY not in listed
