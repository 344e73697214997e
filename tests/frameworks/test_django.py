"""The Django application: its suites on every database, its migrations, and the example from an empty folder."""

import json
import os
import shutil
import signal
import subprocess
import urllib.request
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from pika import BasicProperties
from pika.exceptions import ChannelClosedByBroker

from pillarbox import open_store
from tests.docs.pages import ROOT, blocks
from tests.frameworks.conftest import MakeEnvironment
from tests.frameworks.environment import NEWEST, Environment, copy_example
from tests.frameworks.programs import running
from tests.integration.rabbitmq.consumer import channel, publish_confirmed
from tests.servers.ports import free_port, is_open
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.waiting import wait_until
from tests.versions import DJANGO

PROJECT = Path(__file__).parent / "django_project"
BOUND = 600
"""Seconds that a suite may take on a busy machine."""

VERSION = NEWEST if os.environ.get(DJANGO) == "newest" else ""
"""`make versions ARGS=django-newest` runs everything with the newest Django."""
ENGINES = {
    "sqlite": (f"django{VERSION}", {}),
    "psycopg": (f"django{VERSION}", {}),
    "psycopg2": (f"django_psycopg2{VERSION}", {"PREFIX": "shop_outbox_", "SCHEMA": "Events"}),
    "mariadb": (f"django{VERSION}", {"PREFIX": "Shop_"}),
    "psycopg, newest Django": ("django_newest", {}),
}


@pytest.fixture(params=[name for name in ENGINES if not (VERSION and "newest" in name)])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def project(engine: str, environment: MakeEnvironment, tmp_path: Path, request: pytest.FixtureRequest) -> "Project":
    """The project in an empty folder, on an empty database of each engine."""
    name, variables = ENGINES[engine]
    if engine != "sqlite":
        server = "mariadb" if engine == "mariadb" else "postgres"
        variables = {"DATABASE_URL": request.getfixturevalue(f"empty_{server}_url"), **variables}
    return Project(environment(name), copied(PROJECT, tmp_path), variables)


def copied(project: Path, folder: Path) -> Path:
    """The project in another folder."""
    return Path(shutil.copytree(project, folder / "project", ignore=shutil.ignore_patterns("__pycache__")))


class Project:
    """A project of Django and its `manage.py`."""

    def __init__(self, environment: Environment, folder: Path, variables: Mapping[str, str]) -> None:
        self.environment, self.folder, self.variables = environment, folder, dict(variables)

    def manage(self, *arguments: str, **variables: str) -> str:
        """What a command prints; fails if it does."""
        given = self.variables | variables
        ran = self.environment.run(
            "python", "manage.py", *arguments, folder=self.folder, environment=given, bound=BOUND
        )
        return ran.stdout

    def refused(self, *arguments: str, **variables: str) -> str:
        """What a command that fails prints on standard error."""
        ran = subprocess.run(
            [str(self.environment.bin / "python"), "manage.py", *arguments],
            cwd=self.folder,
            env=self.environment.variables(self.variables | variables),
            capture_output=True,
            text=True,
            timeout=BOUND,
            check=False,
        )
        assert ran.returncode != 0, ran.stdout
        return ran.stderr

    def record(self) -> str:
        """The id of an event that is committed."""
        code = (
            "from django.db import transaction; from pillarbox import Event; "
            "from pillarbox.integrations.django import record\n"
            "with transaction.atomic(): print(record(Event('order.placed', {'total': 3}))[0])"
        )
        return self.manage("shell", "--no-imports", "-c", code).strip()

    @contextmanager
    def serving(self) -> Iterator[str]:
        """The address of `runserver`."""
        port = free_port()
        log = self.folder / "server.log"
        with log.open("w") as output:
            process = subprocess.Popen(
                [str(self.environment.bin / "python"), "manage.py", "runserver", "--noreload", f"127.0.0.1:{port}"],
                cwd=self.folder,
                env=self.environment.variables(self.variables),
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            wait_until(lambda: is_open(port) or process.poll() is not None, bound=120, what="Django listens")
            assert process.poll() is None, log.read_text()
            yield f"http://127.0.0.1:{port}"
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(timeout=60)
            finally:
                process.kill()
                process.wait()


def test_the_suites_pass(project: Project) -> None:
    project.manage("test", "--pattern", "suite_*.py")
    assert "No changes detected" in project.manage("makemigrations", "--check", "--dry-run")


def test_missing_tables_are_migrated_by_django(project: Project) -> None:
    printed = [project.refused("pillarbox_status"), project.manage("pillarbox", "schema", "status")]
    assert [("manage.py migrate" in text, "schema apply" in text) for text in printed] == [(True, False)] * 2, printed


def test_a_missing_driver_and_a_missing_server_are_explained(environment: MakeEnvironment, tmp_path: Path) -> None:
    (tmp_path / "asyncpg.py").write_text("raise ImportError('not installed')\n")
    variables = {"DATABASE_URL": "postgresql://app@127.0.0.1:1/shop", "PYTHONPATH": str(tmp_path)}
    project = Project(environment(f"django{VERSION}"), copied(PROJECT, tmp_path), variables)
    unreachable = Project(project.environment, project.folder, {"DATABASE_URL": variables["DATABASE_URL"]})
    assert "check that the server runs, and the address in DATABASES['default']" in unreachable.refused(
        "pillarbox_status"
    )
    said = project.refused("check")
    assert "(pillarbox.E003) DATABASES['default']" in said
    assert 'pip install "pillarbox[postgres]"' in said


def test_the_migrations_create_keep_and_drop_the_tables(project: Project, engine: str) -> None:
    project.manage("migrate")
    event_id = project.record()
    refused = project.refused("migrate", "pillarbox", "zero")
    assert "pending" in refused
    assert event_id in project.manage("pillarbox", "events", "list")

    project.manage("migrate")  # the later versions were undone one by one, before the first was refused
    project.manage("pillarbox_relay", "--until-empty")
    project.manage("migrate", "pillarbox", "zero")
    assert "no tables of Pillarbox" in project.refused("check", "--database", "default", "--fail-level", "WARNING")
    project.manage("migrate")
    assert project.record() in project.manage("pillarbox", "events", "list")


def test_the_tables_of_the_command_line_are_adopted(project: Project) -> None:
    project.manage("pillarbox", "schema", "apply")
    project.manage("migrate", "contenttypes")
    event_id = project.record()
    project.manage("migrate")
    assert event_id in project.manage("pillarbox", "events", "list")
    assert json.loads(project.manage("pillarbox", "schema", "status", "--json"))["ok"] is True


def test_there_is_a_migration_of_django_for_each_version_of_the_tables() -> None:
    folder = ROOT / "src/pillarbox/integrations/django/migrations"
    names = sorted(path.stem for path in folder.glob("0*.py"))
    for url in ("sqlite:///unused.db", "postgresql://localhost/x", "mariadb://localhost/x"):
        assert [script.name for script in open_store(url).schema.scripts()] == names


def test_the_relay_stops_on_a_signal_and_closes_connections_between_handlers(project: Project) -> None:
    project.manage("migrate")
    event_id = project.record()
    relay = subprocess.Popen(
        [str(project.environment.bin / "python"), "manage.py", "pillarbox_relay", "--database", "default"],
        cwd=project.folder,
        env=project.environment.variables(project.variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        wait_until(
            lambda: '"backlog": 0' in project.manage("pillarbox_status", "--json"), bound=120, what="the event is sent"
        )
        relay.send_signal(signal.SIGTERM)
        output, _ = relay.communicate(timeout=120)
    finally:
        relay.kill()
        relay.wait()
    assert relay.returncode == 0, output
    assert f"delivered event: event_id={event_id}" in output


def test_a_consumer_of_a_broker_commits_the_inbox_with_the_models_and_stops_on_a_signal(
    environment: MakeEnvironment, tmp_path: Path, rabbitmq_server: RabbitMQServer
) -> None:
    vhost = f"django-{uuid.uuid4().hex[:8]}"
    rabbitmq_server.add_vhosts(vhost)
    url = rabbitmq_server.url(vhost)
    project = Project(environment(f"django{VERSION}"), copied(PROJECT, tmp_path), {"AMQP_URL": url})
    project.manage("migrate")

    def notes() -> str:
        code = "from shop.models import Note; print(*Note.objects.values_list('text', flat=True), sep=chr(10))"
        return project.manage("shell", "--no-imports", "-c", code)

    command = [str(project.environment.bin / "python"), "manage.py", "pillarbox_consume", "shop.events:billing"]
    with running(command, project.folder, project.environment.variables(project.variables)) as consumer:
        # The consumer declares its queue when it is connected.
        wait_until(lambda: queue_exists(url, "billing"), bound=120, what="the consumer is connected")
        with channel(url) as broker:
            broker.confirm_delivery()
            for event_id in ("e1", "e1", "e2"):  # a duplicate
                properties = BasicProperties(message_id=event_id, type="order.billed", content_type="application/json")
                publish_confirmed(broker, "", "billing", b"{}", properties)
        wait_until(lambda: "billed e2" in notes(), bound=120, what="the events are handled")
        consumer.process.send_signal(signal.SIGTERM)
        assert consumer.process.wait(timeout=120) == 0
    assert sorted(notes().split("\n")) == ["", "billed e1", "billed e2"]
    [statistics] = json.loads(project.manage("pillarbox", "inbox", "list", "--json"))["consumers"]
    assert (statistics["name"], statistics["processed"], statistics["duplicates"]) == ("billing", 2, 1)


class TestExample:
    @pytest.fixture(params=["sqlite", "psycopg"])
    def shop(self, environment: MakeEnvironment, tmp_path: Path, request: pytest.FixtureRequest) -> Project:
        variables: dict[str, str] = {}
        if request.param == "psycopg":
            variables["DATABASE_URL"] = request.getfixturevalue("empty_postgres_url")
        return Project(environment(f"django{VERSION}"), copy_example("django_shop", tmp_path), variables)

    def test_the_commands_of_its_readme_work_in_an_empty_folder(self, shop: Project) -> None:
        [first, second] = blocks(ROOT / "examples/django_shop/README.md", "")
        commands = [line.split() for line in (first + second).splitlines()]
        managed = {line[2]: line[3:] for line in commands if line[:2] == ["python", "manage.py"]}
        assert list(managed) == [
            "migrate",
            "test",
            "createsuperuser",
            "runserver",
            "pillarbox_relay",
            "pillarbox_status",
        ]
        for name in ("migrate", "test"):
            shop.manage(name, *managed[name])
        shop.manage("createsuperuser", "--noinput", *managed["createsuperuser"], DJANGO_SUPERUSER_PASSWORD="pass word")
        with shop.serving() as address:
            assert fetched(f"{address}/orders/", {"customer": "ada", "total": 42}) == {"order": 1}
            assert fetched(f"{address}/orders/async/", {"customer": "bob", "total": 7}) == {"order": 2}
            shop.manage("pillarbox_relay", *managed["pillarbox_relay"])
            orders = fetched(f"{address}/orders/")["orders"]
            assert [(one["customer"], one["confirmed"]) for one in orders] == [("ada", True), ("bob", True)]
            assert "no pending events" in shop.manage("pillarbox_status")

    def test_its_requirements_are_the_packages_of_the_lock(self) -> None:
        wanted = (ROOT / "examples/django_shop/requirements.txt").read_text().split()
        locked = (ROOT / "requirements/frameworks/django.in").read_text()
        assert wanted[0] == "pillarbox[django,postgres]"
        assert all(name in locked for name in wanted[1:])


def test_the_snippets_of_the_page_are_those_of_the_example() -> None:
    written = [path.read_text(encoding="utf-8") for path in (ROOT / "examples/django_shop").rglob("*.py")]
    # Python with a capital P: what tests/docs runs are whole programs.
    snippets = blocks(ROOT / "docs/how-to/django.md", "Python")
    assert len(snippets) == 5
    for snippet in snippets:
        assert any(snippet in text for text in written), snippet


def queue_exists(url: str, name: str) -> bool:
    with channel(url) as broker:
        try:
            broker.queue_declare(name, passive=True)
        except ChannelClosedByBroker:
            return False
    return True


def fetched(url: str, posted: Mapping[str, Any] | None = None) -> Any:
    """What a page of JSON says."""
    assert url.startswith("http://127.0.0.1:")
    data = None if posted is None else json.dumps(posted).encode()
    with closing(urllib.request.urlopen(url, data=data, timeout=60)) as response:  # noqa: S310 - checked above
        return json.load(response)
