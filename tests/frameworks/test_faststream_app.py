"""examples/faststream_app, from an empty folder in an environment of its own, with the commands of its README."""

import uuid
from pathlib import Path

import psycopg
import pytest

from tests.frameworks.conftest import MakeEnvironment
from tests.frameworks.environment import copy_example, typed
from tests.frameworks.programs import running
from tests.servers.processes import Started
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.waiting import wait_until

BOUND = 120.0


@pytest.fixture
def variables(empty_postgres_url: str, rabbitmq_server: RabbitMQServer) -> dict[str, str]:
    vhost = f"faststream-{uuid.uuid4().hex[:12]}"
    rabbitmq_server.add_vhosts(vhost)
    return {"PILLARBOX_STORE": empty_postgres_url, "PILLARBOX_TRANSPORT": rabbitmq_server.url(vhost)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return copy_example("faststream_app", tmp_path)


def sent(database: str) -> list[tuple[int, int]]:
    with psycopg.connect(database) as connection:
        if connection.execute("SELECT to_regclass('invoice')").fetchone() == (None,):
            return []
        return connection.execute("SELECT order_id, total FROM invoice WHERE sent ORDER BY order_id").fetchall()


def test_the_example_bills_each_order_once_also_after_a_kill(
    environment: MakeEnvironment, folder: Path, variables: dict[str, str]
) -> None:
    own, database = environment("faststream"), variables["PILLARBOX_STORE"]
    *preparation, ((program, *arguments), _) = typed(folder)
    assert program == "faststream"
    service = [str(own.bin / program), *arguments]
    for command in preparation:
        own.run(*command.words, folder=folder, environment=variables)
    with running(service, folder, own.variables(variables)) as started:
        wait_for(started, database, [(42, 1999)])
    own.run("python", "place.py", "43", "5", folder=folder, environment=variables)
    with running(service, folder, own.variables(variables)) as started:
        wait_for(started, database, [(42, 1999), (43, 5)])


def wait_for(service: Started, database: str, invoices: list[tuple[int, int]]) -> None:
    wait_until(
        lambda: service.must_run() and len(sent(database)) >= len(invoices), bound=BOUND, what="invoices", pause=0.1
    )
    assert sent(database) == invoices
