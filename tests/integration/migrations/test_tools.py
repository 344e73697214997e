"""`schema sql` runs in one transaction of psql, of a driver and of Django's migrations."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import asyncpg
import psycopg
import psycopg2
import pytest

from tests.integration.migrations.catalog import catalog
from tests.integration.migrations.database import ALIASES, printed, status
from tests.integration.migrations.django_project import DjangoProject


def with_psql(url: str, script: str) -> None:
    command = ["psql", "-1", "--quiet", "--no-psqlrc", "--set", "ON_ERROR_STOP=1", url]
    ran = subprocess.run(command, input=script, text=True, check=False, capture_output=True)
    if ran.returncode:
        raise RuntimeError(ran.stderr)


def with_psycopg(url: str, script: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(script.encode())


def with_psycopg2(url: str, script: str) -> None:
    with closing(psycopg2.connect(url)) as connection, connection, connection.cursor() as cursor:
        cursor.execute(script)


def with_asyncpg(url: str, script: str) -> None:
    async def run() -> None:
        connection = await asyncpg.connect(url)
        try:
            async with connection.transaction():
                await connection.execute(script)
        finally:
            await connection.close()

    asyncio.run(run())


TOOLS: dict[str, Callable[[str, str], None]] = {
    "psql -1": with_psql,
    "psycopg": with_psycopg,
    "psycopg2": with_psycopg2,
    "asyncpg": with_asyncpg,
}


@pytest.mark.parametrize("tool", TOOLS)
def test_the_plain_script_runs_in_one_transaction(tool: str, postgres_url: str, empty_postgres_url: str) -> None:
    url = empty_postgres_url
    script = printed(url)
    with pytest.raises(Exception, match="division by zero"):
        TOOLS[tool](url, f"{script}\nSELECT 1 / 0;")
    assert status(url).version == 0
    TOOLS[tool](url, script)
    assert status(url).ok
    assert catalog(url, "outbox_") == catalog(postgres_url, "outbox_", without=ALIASES)


@pytest.mark.parametrize("tool", TOOLS)
def test_the_script_of_an_upgrade_runs_in_one_transaction(tool: str, empty_postgres_url: str) -> None:
    url = empty_postgres_url
    TOOLS[tool](url, before_upgrade(printed(url)))
    assert status(url).version == 1
    TOOLS[tool](url, printed(url, "--from", "1"))
    assert status(url).ok


def before_upgrade(script: str) -> str:
    """The script without its last migrations."""
    first, _, _ = script.partition("-- Functions with which any program records events in SQL.")
    _, _, limit = script.rpartition("'0002_record');")
    return first + limit


@pytest.mark.parametrize("engine", ["postgres", "mariadb", "sqlite"])
def test_a_printed_django_migration_migrates_up_and_down(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path, folder: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'shop.db'}"
    if engine != "sqlite":
        url = request.getfixturevalue(f"empty_{engine}_url")
    project = DjangoProject(folder, url)
    project.manage("makemigrations", "shop")
    text = printed(url, "--format", "django", "--after", "shop.0001_initial")
    (project.migrations / "0002_outbox.py").write_text(text, encoding="utf-8")
    project.manage("migrate")
    assert status(url).ok
    # Django compares its own models only: it has nothing to add.
    project.manage("makemigrations", "--check", "shop")
    project.manage("migrate", "shop", "0001")
    assert status(url).version == 0
    project.manage("migrate")
    assert status(url).ok


@pytest.mark.parametrize(
    ("options", "reported"),
    [
        (("--from", "99"), "no schema version 99"),
        (("--from", "2", "--format", "alembic"), "no migration after version 2"),
        (("--after", "x"), "--format"),
        (("--format", "django", "--after", "nodot"), "APP.NAME"),
        (("--format", "django", "--aliases"), "compatibility views"),
        (("--roles", "shop", "--from", "1"), "use it alone"),
    ],
)
def test_invalid_options_are_an_error_of_one_line(options: tuple[str, ...], reported: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pillarbox", "schema", "sql", *options]
    variables = {**os.environ, "PILLARBOX_STORE": "postgresql://localhost/unused"}
    ran = subprocess.run(command, env=variables, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    [line] = ran.stderr.splitlines()
    assert reported in line
