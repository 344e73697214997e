"""The release of BASELINE and this one share a database: during a rollout, after a rollback, and after an upgrade."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.integration.migrations.alembic_project import AlembicProject
from tests.integration.migrations.database import apply, printed, psql, status, with_driver
from tests.servers.waiting import wait_until
from tests.upgrades.release import BaselineRelease

BOUND = 120.0
ENGINES = ("postgres", "mariadb", "sqlite")

HANDLERS = """
from pillarbox import Handlers, PermanentError

handlers = Handlers()

@handlers.on("order.placed", name="placed")
async def placed(event, context):
    pass

@handlers.on("order.failed", name="failed")
async def failed(event, context):
    raise PermanentError("no such order")
"""


@pytest.fixture(params=ENGINES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of each engine."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'shop.db'}"
    empty: str = request.getfixturevalue(f"empty_{request.param}_url")
    return empty


class Release:
    """Runs the commands of a release on one store, in a folder with handlers."""

    def __init__(self, url: str, folder: Path, baseline: BaselineRelease | None = None) -> None:
        self.url = url
        self._folder = folder
        self._command = [sys.executable, "-m", "pillarbox"] if baseline is None else baseline.command()
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PILLARBOX"))}
        self._variables = {
            **kept,
            "PILLARBOX_STORE": url,
            "PILLARBOX_TRANSPORT": "handlers:shop_handlers:handlers",
            "PYTHONPATH": str(folder),
        }
        (folder / "shop_handlers.py").write_text(HANDLERS, encoding="utf-8")

    def attempt(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._command, *arguments],
            cwd=self._folder,
            env=self._variables,
            capture_output=True,
            text=True,
            timeout=BOUND,
            check=False,
        )

    def run(self, *arguments: str) -> str:
        ran = self.attempt(*arguments)
        assert ran.returncode == 0, f"{arguments}\n{ran.stdout}\n{ran.stderr}"
        return ran.stdout

    def events(self, wanted: str) -> set[str]:
        listed = json.loads(self.run("events", "list", "--status", wanted, "--json"))
        return {event["event_id"] for event in listed["events"]}

    def relays(self) -> list[str]:
        """The names of the relays that run."""
        return sorted(relay["name"] for relay in json.loads(self.run("relays", "list", "--json"))["relays"])

    @contextmanager
    def relay(self, name: str) -> Iterator["subprocess.Popen[bytes]"]:
        """A relay process; it must drain and end well."""
        command = [*self._command, "relay", "--name", name, "--fail-fast"]
        log = self._folder / f"{name}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                command, cwd=self._folder, env=self._variables, stdout=output, stderr=subprocess.STDOUT
            )
        try:

            def joined() -> bool:
                assert process.poll() is None, log.read_text(encoding="utf-8")
                return name in self.relays()

            wait_until(joined, bound=BOUND, what=f"relay {name}", pause=0.2)
            yield process
            process.send_signal(signal.SIGTERM)
            assert process.wait(BOUND) == 0, log.read_text(encoding="utf-8")
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


@pytest.fixture
def old(url: str, folder: Path, baseline: BaselineRelease) -> Release:
    return Release(url, folder, baseline)


@pytest.fixture
def new(url: str, folder: Path) -> Release:
    return Release(url, folder)


def fill(old: Release) -> None:
    """BASELINE's tables with an event in the history, a dead letter and a pending event."""
    old.run("schema", "apply")
    old.run("record", "order.placed", '{"id": 1}', "--id", "delivered")
    old.run("record", "order.failed", '{"id": 2}', "--id", "dead")
    old.run("relay", "--until-empty")
    old.run("record", "order.placed", '{"id": 3}', "--id", "pending")


def with_apply(url: str, folder: Path) -> None:
    apply(url)


def with_script(url: str, folder: Path) -> None:
    psql(url, printed(url, "--from", "1"))


def with_alembic(url: str, folder: Path) -> None:
    (folder / "alembic").mkdir()
    project = AlembicProject(folder / "alembic", with_driver(url, "postgresql+asyncpg"))
    project.add("one", upgrade='op.pillarbox_upgrade("0002")', downgrade='op.pillarbox_downgrade("0001")')
    project.alembic("upgrade", "head")


def with_printed_revision(url: str, folder: Path) -> None:
    (folder / "alembic").mkdir()
    project = AlembicProject(folder / "alembic", with_driver(url, "postgresql+psycopg2"))
    (project.versions / "outbox.py").write_text(printed(url, "--format", "alembic", "--from", "1"), encoding="utf-8")
    project.alembic("upgrade", "head")


UPGRADES: dict[str, Callable[[str, Path], None]] = {
    "schema apply": with_apply,
    "schema sql --from": with_script,
    "op.pillarbox_upgrade": with_alembic,
    "schema sql --format alembic": with_printed_revision,
}


@pytest.mark.parametrize("way", UPGRADES)
@pytest.mark.parametrize("url", ["postgres"], indirect=True)
def test_an_upgrade_keeps_pending_events_history_and_dead_letters(
    way: str, old: Release, new: Release, folder: Path
) -> None:
    fill(old)
    UPGRADES[way](new.url, folder)
    assert status(new.url).ok
    assert (new.events("pending"), new.events("published"), new.events("failed")) == (
        {"pending"},
        {"delivered"},
        {"dead"},
    )
    new.run("relay", "--until-empty")
    assert new.events("published") == {"delivered", "pending"}
    new.run("dead", "retry", "dead", "--yes")
    assert new.events("pending") == {"dead"}


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_the_old_relay_works_on_while_the_tables_are_migrated(old: Release, new: Release) -> None:
    """On a file one relay works at a time; for several relays on a server see test_rolling.py."""
    fill(old)
    with old.relay("old") as running:
        new.run("schema", "apply")
        new.run("record", "order.placed", '{"id": 4}', "--id", "after the migration")
        wait_until(
            lambda: new.events("published") == {"delivered", "pending", "after the migration"},
            bound=BOUND,
            what="events delivered by the old relay",
            pause=0.2,
        )
        assert running.poll() is None
    assert status(new.url).ok


def test_the_old_release_starts_on_tables_that_are_ahead_by_an_additive_change(old: Release, new: Release) -> None:
    """A rollback: the tables stay as they are, and the old release works with them."""
    fill(old)
    new.run("schema", "apply")
    assert json.loads(old.run("schema", "status", "--json"))["required"] == 1
    old.run("schema", "check")
    assert old.run("schema", "apply") == "the tables are up to date\n"
    old.run("record", "order.placed", '{"id": 4}', "--id", "after the rollback")
    with old.relay("old"):
        wait_until(
            lambda: new.events("published") == {"delivered", "pending", "after the rollback"},
            bound=BOUND,
            what="events delivered after the rollback",
            pause=0.2,
        )
    assert status(new.url).ok


def test_the_new_relay_names_the_command_on_tables_of_the_old_release(old: Release, new: Release) -> None:
    fill(old)
    refused = new.attempt("relay", "--until-empty")
    assert refused.returncode == 1
    assert "pillarbox schema apply" in refused.stderr
    # Producers need the table of messages only.
    new.run("record", "order.placed", '{"id": 4}', "--id", "before the migration")
    assert old.events("pending") == {"pending", "before the migration"}
