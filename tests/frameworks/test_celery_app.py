"""examples/celery_app, from an empty folder in an environment of its own, with the commands of its README."""

import re
import uuid
from pathlib import Path

import psycopg
import pytest

from tests.docs.pages import ROOT
from tests.frameworks.conftest import MakeEnvironment
from tests.frameworks.environment import copy_example
from tests.frameworks.programs import running
from tests.servers.processes import Started
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.waiting import wait_until

BOUND = 120.0
SEND_AGAIN = """
import sys
from billing import bill

bill.apply_async([{"id": 42, "total": 1999}], task_id=sys.argv[1], queue="billing")
"""


@pytest.fixture
def variables(empty_postgres_url: str, rabbitmq_server: RabbitMQServer) -> dict[str, str]:
    vhost = f"celery-{uuid.uuid4().hex[:12]}"
    rabbitmq_server.add_vhosts(vhost)
    broker = rabbitmq_server.url(vhost).replace("amqp", "celery", 1)
    return {"PILLARBOX_STORE": empty_postgres_url, "PILLARBOX_TRANSPORT": broker, "PGSSLMODE": "disable"}


def commands(folder: Path) -> list[list[str]]:
    """What the README says to type."""
    text = (folder / "README.md").read_text(encoding="utf-8")
    return [line.split() for line in re.findall(r"^\$ (.+)$", text, re.MULTILINE)]


def invoices(database: str) -> list[tuple[int, int]]:
    with psycopg.connect(database) as connection:
        return connection.execute("SELECT order_id, total FROM invoice ORDER BY order_id").fetchall()


def test_the_example_bills_each_order_once_also_if_its_event_is_sent_twice(
    environment: MakeEnvironment, tmp_path: Path, variables: dict[str, str]
) -> None:
    own, folder, database = environment("celery"), copy_example("celery_app", tmp_path), variables["PILLARBOX_STORE"]

    def run(*command: str) -> str:
        return own.run(*command, folder=folder, environment=variables).stdout

    apply, place, relay, (program, *arguments) = commands(folder)
    assert (place[:2], program) == (["python", "shop.py"], "celery")
    run(*apply)
    event_id = run(*place).strip()
    run(*relay)
    # The block kills the worker at its end.
    with running([str(own.bin / program), *arguments], folder, own.variables(variables)) as worker:
        wait_for(worker, database, [(42, 1999)])
    run("python", "-c", SEND_AGAIN, event_id)
    run("python", "shop.py", "43", "5")
    run(*relay)
    with running([str(own.bin / program), *arguments], folder, own.variables(variables)) as worker:
        wait_for(worker, database, [(42, 1999), (43, 5)])
        skipped = f"skipped duplicate: task=shop.bill event_id={event_id}"
        wait_until(lambda: worker.must_run() and skipped in worker.log.read_text(), bound=BOUND, what="a duplicate")
    assert invoices(database) == [(42, 1999), (43, 5)]


def wait_for(worker: Started, database: str, wanted: list[tuple[int, int]]) -> None:
    wait_until(
        lambda: worker.must_run() and len(invoices(database)) >= len(wanted), bound=BOUND, what="invoices", pause=0.1
    )
    assert invoices(database) == wanted


def test_its_requirements_are_the_packages_of_the_lock() -> None:
    wanted = (ROOT / "examples/celery_app/requirements.txt").read_text(encoding="utf-8").split()
    locked = (ROOT / "requirements/frameworks/celery.in").read_text(encoding="utf-8")
    assert [name for name in wanted if "pillarbox" not in name and name not in locked] == []
