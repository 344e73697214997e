"""What the how-to page about migrations shows works in a new Alembic project."""

import os
import shlex
import subprocess
import sysconfig
from pathlib import Path

from tests.docs.pages import ROOT, blocks
from tests.integration.migrations.alembic_project import MODELS
from tests.integration.migrations.database import execute, status, with_driver

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
