"""This release, Alembic and Django upgrade tables of BASELINE that have data."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.migrations.alembic_project import AlembicProject
from tests.integration.migrations.database import apply, printed, psql, status, with_driver
from tests.integration.migrations.django_project import OUTBOX_APPS, DjangoProject
from tests.integration.migrations.release import Release, fill
from tests.upgrades.release import BaselineRelease

ASYNC_DRIVERS = {"postgresql": "postgresql+asyncpg", "mariadb": "mariadb+asyncmy", "sqlite": "sqlite"}
SYNC_DRIVERS = {"postgresql": "postgresql+psycopg2", "mariadb": "mariadb+pymysql", "sqlite": "sqlite"}


def with_apply(url: str, folder: Path) -> None:
    apply(url)


def with_script(url: str, folder: Path) -> None:
    psql(url, printed(url, "--from", "1"))


def with_alembic(url: str, folder: Path) -> None:
    project = alembic_project(url, folder, ASYNC_DRIVERS)
    project.add("one", upgrade='op.pillarbox_upgrade("0002")', downgrade='op.pillarbox_downgrade("0001")')
    project.alembic("upgrade", "head")


def with_printed_revision(url: str, folder: Path) -> None:
    project = alembic_project(url, folder, SYNC_DRIVERS)
    (project.versions / "outbox.py").write_text(printed(url, "--format", "alembic", "--from", "1"), encoding="utf-8")
    project.alembic("upgrade", "head")


def alembic_project(url: str, folder: Path, drivers: dict[str, str]) -> AlembicProject:
    (folder / "alembic").mkdir()
    return AlembicProject(folder / "alembic", with_driver(url, drivers[url.partition(":")[0]]))


def with_django(url: str, folder: Path) -> None:
    DjangoProject(folder / "django", url, apps=OUTBOX_APPS).manage("migrate")


def with_printed_django_migration(url: str, folder: Path) -> None:
    project = DjangoProject(folder / "django", url)
    text = printed(url, "--format", "django", "--from", "1")
    (project.migrations / "0001_outbox.py").write_text(text, encoding="utf-8")
    project.manage("migrate")


UPGRADES: dict[str, Callable[[str, Path], None]] = {
    "schema apply": with_apply,
    "schema sql --from": with_script,
    "op.pillarbox_upgrade": with_alembic,
    "schema sql --format alembic": with_printed_revision,
    "manage.py migrate": with_django,
    "schema sql --format django": with_printed_django_migration,
}
ON_EVERY_ENGINE = [way for way in UPGRADES if way not in ("schema apply", "schema sql --from")]
"""test_baseline_release.py applies on every engine; the script is one for psql."""


@pytest.mark.parametrize(
    ("url", "way"),
    [
        *(("postgres", way) for way in UPGRADES),
        *((engine, way) for engine in ("mariadb", "sqlite") for way in ON_EVERY_ENGINE),
    ],
    indirect=["url"],
)
def test_an_upgrade_keeps_pending_events_history_and_dead_letters(
    way: str, old: Release, new: Release, folder: Path
) -> None:
    fill(old)
    UPGRADES[way](new.url, folder)
    assert status(new.url).ok
    assert new.statuses() == {"delivered": "PUBLISHED", "dead": "FAILED", "pending": "PENDING"}
    new.run("relay", "--until-empty")
    new.run("dead", "retry", "dead", "--yes")
    assert new.statuses() == {"delivered": "PUBLISHED", "dead": "PENDING", "pending": "PUBLISHED"}


def test_a_project_that_baseline_migrated_is_migrated_by_this_release_and_delivers(
    url: str, old: Release, new: Release, folder: Path, baseline: BaselineRelease
) -> None:
    # BASELINE had a second migration of Django, but not yet the second version of the tables.
    DjangoProject(folder, url, apps=OUTBOX_APPS, python=baseline.python).manage("migrate", "pillarbox", "0001")
    fill(old)
    project = DjangoProject(folder, url, apps=OUTBOX_APPS)
    project.manage("migrate")
    assert "no issues" in project.manage("check", "--database", "default", "--fail-level", "WARNING")
    assert new.statuses() == {"delivered": "PUBLISHED", "dead": "FAILED", "pending": "PENDING"}
    project.manage("pillarbox_relay", "--until-empty")
    assert new.statuses() == {"delivered": "PUBLISHED", "dead": "FAILED", "pending": "PUBLISHED"}
