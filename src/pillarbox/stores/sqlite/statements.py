"""Every statement sent to SQLite, by name, with names of tables and fragments filled in."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable

from pillarbox.statements import Names, StatementSet, load, text
from pillarbox.stores.admin.engine import ADMIN

PACKAGE = "pillarbox.stores.sqlite"


class SqliteStatements(StatementSet):
    """The statements of one outbox."""

    def __init__(self, names: Names) -> None:
        aliases = {placeholder: names.qualified(name) for placeholder, name in names.aliases.items()}
        super().__init__(names, load(PACKAGE), load(ADMIN), **aliases)

    def script(self, name: str, **values: str) -> str:
        """A named statement that is a script, each of its statements closed with a semicolon."""
        return self.get(name, **values) + ";\n"

    def compatibility_views(self) -> str:
        """The script of `schema apply --aliases`, with its comments."""
        return self.render(text(PACKAGE, "scripts/compatibility_views"))

    def migrations(self, *more: Traversable) -> dict[int, tuple[str, str]]:
        """Version → (name, SQL) of the package's migrations and of those in further folders, in order."""
        return self.read_migrations(files(PACKAGE) / "sql" / "migrations", *more)


def each(script: str) -> Iterator[str]:
    """The statements of a script; `executescript` would commit whatever transaction is open."""
    lines: list[str] = []
    for line in script.splitlines():
        lines.append(line)
        if sqlite3.complete_statement(statement := "\n".join(lines)):
            yield statement
            lines = []
