"""What the how-to page about migrations shows works in a new Alembic project."""

import os
import re
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

from pillarbox import open_store
from tests.docs.pages import ROOT, blocks
from tests.integration.migrations.alembic_project import MODELS
from tests.integration.migrations.database import execute, status, with_driver
from tests.integration.migrations.django_project import DjangoProject

PAGE = ROOT / "docs/how-to/migrations.md"


def test_the_steps_for_alembic_lead_to_the_tables(empty_postgres_url: str, folder: Path) -> None:
    url = empty_postgres_url
    environment, revision = blocks(PAGE, "text")
    first, create, apply, *_ = blocks(PAGE, "console")
    run(first, folder, url)
    (folder / "models.py").write_text(MODELS, encoding="utf-8")
    change(folder / "alembic.ini", "driver://user:pass@localhost/dbname", with_driver(url, "postgresql+psycopg"))
    change(folder / "migrations" / "env.py", "target_metadata = None", environment)
    configured = "target_metadata=target_metadata, include_object=include_object"
    assert configured in PAGE.read_text(encoding="utf-8")
    change(folder / "migrations" / "env.py", "target_metadata=target_metadata", configured)
    run(create, folder, url)
    [file] = (folder / "migrations" / "versions").glob("*_outbox.py")
    before, _, _ = file.read_text(encoding="utf-8").partition("def upgrade")
    file.write_text(before + revision, encoding="utf-8")
    run(apply, folder, url)
    assert status(url).ok
    assert execute(url, "SELECT count(*) FROM orders") == [(0,)]
    run("$ alembic downgrade base", folder, url)
    assert status(url).version == 0


def command_that(begins: str) -> str:
    """The block of commands that begins so."""
    [block] = [block for block in blocks(PAGE, "console") if block.startswith(f"$ {begins}")]
    return block


def typed(block: str, folder: Path, url: str, **variables: str) -> None:
    """Type the commands of a block into a shell."""
    path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])
    script = "".join(f"{line.removeprefix('$ ')}\n" for line in block.splitlines())
    ran = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": path, "PILLARBOX_STORE": url, **variables},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ran.returncode == 0, f"{block}\n{ran.stdout}\n{ran.stderr}"


def test_the_printed_revision_of_alembic_follows_the_named_one(empty_postgres_url: str, folder: Path) -> None:
    url = empty_postgres_url
    block = command_that("pillarbox schema sql --format alembic")
    [head] = re.findall(r"--after (\w+)", block)
    typed("$ alembic init migrations", folder, url)
    change(folder / "alembic.ini", "driver://user:pass@localhost/dbname", with_driver(url, "postgresql+psycopg"))
    typed(f"$ alembic revision -m orders --rev-id {head}\n{block}$ alembic upgrade head", folder, url)
    assert status(url).ok
    typed(f"$ alembic downgrade {head}", folder, url)
    assert status(url).version == 0


def test_the_printed_migration_of_django_follows_the_named_one(empty_postgres_url: str, folder: Path) -> None:
    url = empty_postgres_url
    migrations = DjangoProject(folder, url).migrations
    django = {"DJANGO_SETTINGS_MODULE": "config", "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    typed("$ python -m django makemigrations shop", folder, url, **django)
    (migrations / "0001_initial.py").rename(migrations / "0007_price.py")
    typed(command_that("pillarbox schema sql --format django"), folder, url, **django)
    assert status(url).ok
    typed("$ python -m django makemigrations --check shop", folder, url, **django)
    typed("$ python -m django migrate shop 0007", folder, url, **django)
    assert status(url).version == 0


def test_psql_creates_and_upgrades_the_tables(postgres_url: str, empty_postgres_url: str, folder: Path) -> None:
    create, upgrade = command_that("pillarbox schema sql | psql").splitlines()
    for command in (create, upgrade):
        assert command.endswith(" shop")
    typed(create.removesuffix("shop") + empty_postgres_url, folder, empty_postgres_url)
    assert status(empty_postgres_url).ok
    for migration in open_store(postgres_url).schema.downgrades(to=1):
        for statement in migration.statements:
            execute(postgres_url, statement)
    assert status(postgres_url).version == 1
    typed(upgrade.removesuffix("shop") + postgres_url, folder, postgres_url)
    assert status(postgres_url).ok


def run(block: str, folder: Path, url: str) -> None:
    """Run the commands of a block; this environment has what the page installs."""
    scripts = Path(sysconfig.get_path("scripts"))
    for line in block.splitlines():
        command = shlex.split(line.removeprefix("$ "))
        if command[0] == "pip":
            continue
        ran = subprocess.run(
            [str(scripts / command[0]), *command[1:]],
            cwd=folder,
            env={**os.environ, "PILLARBOX_STORE": url},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert ran.returncode == 0, f"{line}\n{ran.stdout}\n{ran.stderr}"


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
