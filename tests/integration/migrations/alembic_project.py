"""A project as `alembic init` makes it, with the changes that the how-to page asks for."""

import os
import subprocess
import sys
from pathlib import Path

DRIVERS = ("postgresql+psycopg", "postgresql+psycopg2", "postgresql+asyncpg")

MODELS = """
from sqlalchemy import Column, Integer, MetaData, String, Table

metadata = MetaData()
orders = Table("orders", metadata, Column("id", Integer, primary_key=True), Column("note", String(50)))
"""

REVISION = """
from alembic import op

revision = "{revision}"
down_revision = {after!r}


def upgrade() -> None:
    {upgrade}


def downgrade() -> None:
    {downgrade}
"""


class AlembicProject:
    """An Alembic project in a folder of its own, for one database."""

    def __init__(self, folder: Path, url: str, *, filtered: bool = True) -> None:
        self.folder = folder
        self._after: str | None = None
        template = "async" if "+asyncpg" in url or "+asyncmy" in url else "generic"
        self.alembic("init", "--template", template, "migrations")
        (folder / "models.py").write_text(MODELS, encoding="utf-8")
        _replace(folder / "alembic.ini", "driver://user:pass@localhost/dbname", url)
        environment = folder / "migrations" / "env.py"
        imports = (
            "from models import metadata as target_metadata\nfrom pillarbox.integrations.alembic import include_object"
        )
        _replace(environment, "target_metadata = None", imports)
        if filtered:
            _replace(
                environment,
                "target_metadata=target_metadata",
                "target_metadata=target_metadata, include_object=include_object",
            )

    @property
    def versions(self) -> Path:
        return self.folder / "migrations" / "versions"

    def add(self, revision: str, *, upgrade: str, downgrade: str) -> None:
        """Add a revision after the last one that was added."""
        text = REVISION.format(revision=revision, after=self._after, upgrade=upgrade, downgrade=downgrade)
        (self.versions / f"{revision}.py").write_text(text, encoding="utf-8")
        self._after = revision

    def alembic(self, *arguments: str) -> str:
        """Run alembic, which must succeed; returns its output."""
        ran = self.attempt(*arguments)
        assert ran.returncode == 0, f"{arguments}\n{ran.stdout}\n{ran.stderr}"
        return ran.stdout

    def attempt(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "alembic", *arguments],
            cwd=self.folder,
            env={name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PILLARBOX"))},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )


def _replace(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text, f"{path.name} has no {old!r}"
    path.write_text(text.replace(old, new), encoding="utf-8")
