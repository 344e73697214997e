"""The migrations of the tables as files of other migration tools: an Alembic revision, a Django migration."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from pillarbox.core.errors import ConfigurationError
from pillarbox.core.store import MigrationScript, Schema

_BIND = re.compile(r"(?<![:\w\\]):(?=\w)")
_LONGEST_REVISION = 32
"""Characters of Alembic's column."""


def sqlalchemy_text(statement: str) -> str:
    """A statement for `sqlalchemy.text`, and so for `op.execute`: a colon before a word would be a parameter."""
    return _BIND.sub(r"\\:", statement)


def alembic_revision(schema: Schema, *, prefix: str, since: int, after: str | None) -> str:
    """The file of an Alembic revision. after: the revision that it follows; None: it is the first one.

    Raises ConfigurationError if there is nothing to do.
    """
    up, down = _steps(schema, since)
    newest = f"{up[-1].version:04}"
    return f'''"""Pillarbox: {", ".join(script.name for script in up)}.

`pillarbox schema sql --format alembic` wrote this file. It needs nothing of Pillarbox.
"""

from alembic import op

revision = {prefix[: _LONGEST_REVISION - len(newest)] + newest!r}
down_revision = {after!r}
branch_labels = None
depends_on = None

UPGRADE = [
{_literals(sqlalchemy_text(statement) for statement in _flat(up))}]

DOWNGRADE = [
{_literals(sqlalchemy_text(statement) for statement in _flat(down))}]


def upgrade() -> None:
    for statement in UPGRADE:
        op.execute(statement)


def downgrade() -> None:
    for statement in DOWNGRADE:
        op.execute(statement)
'''


def django_migration(schema: Schema, *, since: int, after: str | None) -> str:
    """The file of a Django migration. after: the migration that it follows, as `app.0007_name`; None: there is none.

    Raises ConfigurationError if there is nothing to do, or if `after` is no migration.
    """
    up, down = _steps(schema, since)
    dependencies: list[tuple[str, str]] = []
    if after is not None:
        app, dot, name = after.partition(".")
        if not (app and dot and name):
            raise ConfigurationError(
                f"--after {after!r} is not a Django migration: write APP.NAME, as in shop.0007_price"
            )
        dependencies = [(app, name)]
    return f'''"""Pillarbox: {", ".join(script.name for script in up)}.

`pillarbox schema sql --format django` wrote this file. It needs nothing of Pillarbox.
"""

from django.db import migrations

UPGRADE = [
{_literals(_flat(up))}]

DOWNGRADE = [
{_literals(_flat(down))}]


class Migration(migrations.Migration):
    dependencies = {dependencies!r}
    operations = [migrations.RunSQL(sql=UPGRADE, reverse_sql=DOWNGRADE)]
'''


def _steps(schema: Schema, since: int) -> tuple[list[MigrationScript], list[MigrationScript]]:
    up = schema.scripts(since=since)
    if not up:
        raise ConfigurationError(f"there is no migration after version {since}: leave the file out")
    return up, schema.downgrades(to=since)


def _flat(scripts: Sequence[MigrationScript]) -> Iterable[str]:
    return (statement for script in scripts for statement in script.statements)


def _literals(statements: Iterable[str]) -> str:
    """One literal per statement, as readable as the SQL allows."""
    return "".join(f"    {_literal(statement)},\n" for statement in statements)


def _literal(statement: str) -> str:
    return repr(statement) if '"""' in statement else f'r"""\n{statement}\n"""'
